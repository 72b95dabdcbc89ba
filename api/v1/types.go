// Package v1 is Leasehold's own API: the JSON that travels under /v1/, and a
// Caller that sends it. openapi.yaml beside it says the same for other languages.
package v1

import (
	"math"
	"time"
)

// The headers that mean something here.
const (
	// KeyHeader names a request, so that sending it twice does it once. With a
	// SessionHeader it is the number of the request within that session, from 1 on.
	KeyHeader     = "Idempotency-Key"
	SessionHeader = "Leasehold-Session"

	// RevisionHeader comes with what was read: the newest revision of the namespace
	// at that moment. A watch since it misses nothing.
	RevisionHeader = "Leasehold-Revision"

	// LevelHeader comes with every answer: the feature level that all servers of the
	// cluster work at. Fields of a later level must not be sent to it.
	LevelHeader = "Leasehold-Level"
)

// LevelMany is the first level whose servers know ReleaseRequest.IDs and Withdraw.
const LevelMany = 4

// Sizes of requests and of pages.
const (
	MaxBody      = 128 << 10 // bytes of a request's body
	DefaultLimit = 100       // items of a page
	MaxLimit     = 1000
	MaxReleases  = 1024 // ids of one release
)

// DefaultServer is where a server listens unless told otherwise.
const DefaultServer = "http://127.0.0.1:4653"

// An AcquireRequest asks for a resource, or for several: all of them or none.
type AcquireRequest struct {
	Resource  string            `json:"resource"`
	Holder    string            `json:"holder"`
	ID        string            `json:"id,omitempty"`       // empty: the server makes one
	Shared    bool              `json:"shared,omitempty"`   // one slot, of however many there are
	Slots     int               `json:"slots,omitempty"`    // 0: all, the lease is exclusive
	Capacity  int               `json:"capacity,omitempty"` // with slots: how many there are, if no definition says
	Also      []AcquireItem     `json:"also,omitempty"`     // further resources, granted at the same moment
	Party     string            `json:"party,omitempty"`    // who stands still while this waits; empty: the session, or the holder
	TTL       TTL               `json:"ttl,omitzero"`       // absent: 30s, or none with a session; null: none; "auto": as was learned
	Session   string            `json:"session,omitempty"`  // instead of a ttl
	Wait      Duration          `json:"wait,omitzero"`
	Grace     Duration          `json:"grace,omitzero"`
	HoldLimit Duration          `json:"hold_limit,omitzero"`
	Priority  int               `json:"priority,omitempty"` // in the queue: larger ones go first
	Labels    map[string]string `json:"labels,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// An AcquireItem is one more resource to be granted at the same moment.
type AcquireItem struct {
	Resource string `json:"resource"`
	ID       string `json:"id,omitempty"`
	Shared   bool   `json:"shared,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Capacity int    `json:"capacity,omitempty"`
}

// A RenewRequest makes a lease last for its TTL from now.
type RenewRequest struct {
	ID string `json:"id"`
}

// A ReleaseRequest gives a lease back, or leaves the queue. It names one id, or several:
// those are independent of each other, and the answer is an error if one of them fails.
type ReleaseRequest struct {
	ID       string   `json:"id,omitempty"`
	IDs      []string `json:"ids,omitempty"`      // instead of id, up to MaxReleases; from level 4 on
	Session  string   `json:"session,omitempty"`  // whose they are: without it, the session counts the release as somebody else's; from level 4 on
	Withdraw bool     `json:"withdraw,omitempty"` // an acquire under an unknown id may still come, and is to be refused then; from level 4 on
}

// A ChangeRequest hands a lease to another holder or id without a gap.
type ChangeRequest struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	NewID  string `json:"new_id,omitempty"`
}

// A BreakRequest ends a lease in the name of an operator. It names a lease id, or
// a resource together with the token that the operator saw.
type BreakRequest struct {
	ID       string    `json:"id,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Token    uint64    `json:"token,omitempty"`
	Period   *Duration `json:"period,omitempty"` // absent: what remains; "0s": at once
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// A MoveRequest gives a waiter another priority.
type MoveRequest struct {
	ID       string `json:"id"`
	Priority int    `json:"priority"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// An AskRequest sends whoever holds a resource a message.
type AskRequest struct {
	Resource string `json:"resource"`
	Message  string `json:"message"`
	By       string `json:"by,omitempty"`
}

// An AcknowledgeRequest says that unclean ends on a resource have been looked at.
type AcknowledgeRequest struct {
	Resource string `json:"resource"`
	Token    uint64 `json:"token"` // the newest that was seen: later ends are not meant
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// A DefinitionRequest sets what holds for a resource, or for all under a prefix.
type DefinitionRequest struct {
	Capacity   int      `json:"capacity,omitempty"`
	Units      []string `json:"units,omitempty"`
	DefaultTTL Duration `json:"default_ttl,omitzero"`
	LargestTTL Duration `json:"largest_ttl,omitzero"`
	HoldLimit  Duration `json:"hold_limit,omitzero"`
	Grace      Duration `json:"grace,omitzero"`
	Expected   Duration `json:"expected,omitzero"`
	Unclean    string   `json:"unclean,omitempty"` // allow, warn or acknowledge
	By         string   `json:"by,omitempty"`
	Reason     string   `json:"reason,omitempty"`
}

// A Definition is what was set for a resource, or for all under a prefix.
type Definition struct {
	Namespace  string    `json:"namespace"`
	Path       string    `json:"path"`               // a prefix ends with a slash
	Capacity   int       `json:"capacity,omitempty"` // 0: as the first holder says
	Units      []string  `json:"units,omitempty"`
	DefaultTTL *Duration `json:"default_ttl,omitempty"`
	LargestTTL *Duration `json:"largest_ttl,omitempty"`
	HoldLimit  *Duration `json:"hold_limit,omitempty"`
	Grace      *Duration `json:"grace,omitempty"`
	Expected   *Duration `json:"expected,omitempty"`
	Unclean    string    `json:"unclean"`
	Revision   uint64    `json:"revision"`
}

// A SessionRequest opens a session.
type SessionRequest struct {
	ID     string            `json:"id,omitempty"` // empty: the server makes one
	TTL    TTL               `json:"ttl,omitzero"` // absent: 30s; a session always has one
	Labels map[string]string `json:"labels,omitempty"`
}

// A Lease is one lease as the server saw it.
type Lease struct {
	Namespace   string            `json:"namespace"`
	Resource    string            `json:"resource"`
	ID          string            `json:"id"`
	Holder      string            `json:"holder"`
	Token       uint64            `json:"token"`
	Floor       uint64            `json:"floor"`
	State       string            `json:"state"`
	Slots       int               `json:"slots,omitempty"`     // 0: all, it is exclusive
	Units       []string          `json:"units,omitempty"`     // the slots it got, if they have names
	TTL         *Duration         `json:"ttl"`                 // null: none of its own
	HoldLimit   Duration          `json:"hold_limit,omitzero"` // the longest that it may be held in all
	Expires     *Time             `json:"expires"`             // null: it ends only by release or break
	RemainingMS *int64            `json:"remaining_ms"`        // count it from before the request was sent
	Acquired    *Time             `json:"acquired"`
	AvailableAt *Time             `json:"available_at"` // when the resource can be granted again after an unclean end
	Session     string            `json:"session,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Revision    uint64            `json:"revision"`
	WaitedMS    int64             `json:"waited_ms,omitempty"` // set if the grant was waited for: renew once before you rely on it
	After       *Ending           `json:"after,omitempty"`     // the unclean end before it, if the definition says to warn of that
	Also        []Lease           `json:"also,omitempty"`      // what was granted at the same moment
	Warning     string            `json:"warning,omitempty"`

	// Interventions is with answers to commands, from level 4 on: that of its session.
	Interventions *uint64 `json:"interventions,omitempty"`
}

// A Resource is everything there is to see of one resource.
type Resource struct {
	Namespace   string   `json:"namespace"`
	Resource    string   `json:"resource"`
	State       string   `json:"state"`
	Capacity    int      `json:"capacity"`          // its slots
	Used        int      `json:"used"`              // of them, those that are taken
	Units       []Unit   `json:"units,omitempty"`   // the slots, if they have names
	Holding     int      `json:"holding,omitempty"` // how many hold it, if those are more than are shown
	Holders     []Lease  `json:"holders"`
	Waiting     int      `json:"waiting"`
	Queue       []Waiter `json:"queue,omitempty"`
	Last        *Ending  `json:"last"`
	AvailableAt *Time    `json:"available_at"`

	// Unacknowledged is an unclean end that somebody has to acknowledge first.
	Unacknowledged *Ending `json:"unacknowledged,omitempty"`

	Usual *Usual `json:"usual,omitempty"` // what was learned of it, if that is enough
}

// A Usual is what the last leases on a resource, and the last waits for it, were like.
type Usual struct {
	Holds   int      `json:"holds"` // leases that ended; at most the last 64
	HoldP50 Duration `json:"hold_p50,omitzero"`
	HoldP95 Duration `json:"hold_p95,omitzero"`
	Unclean int      `json:"unclean"` // of them, those that ended uncleanly
	Waits   int      `json:"waits"`   // waiters that got their turn; at most the last 64
	WaitP50 Duration `json:"wait_p50,omitzero"`
	WaitP95 Duration `json:"wait_p95,omitzero"`
	Queue   int      `json:"queue,omitempty"` // how many usually wait
}

// An Advice is the TTL that suits a resource, by what was learned of it.
type Advice struct {
	Namespace string   `json:"namespace"`
	Resource  string   `json:"resource"`
	TTL       Duration `json:"ttl"`
	Learned   bool     `json:"learned"` // false: too little is known, and ttl is the default

	// With learned: the least that pauses allow, the cheapest, and the most that those
	// who wait for a holder that is gone should bear.
	Least    Duration `json:"least,omitzero"`
	Cheapest Duration `json:"cheapest,omitzero"`
	Most     Duration `json:"most,omitzero"`

	Renewals int      `json:"renewals"`  // in one TTL
	Interval Duration `json:"interval"`  // from one to the next
	TakeOver Duration `json:"take_over"` // from when a holder goes away to the end of its lease, on average
	Grace    Duration `json:"grace,omitzero"`
	Usual    *Usual   `json:"usual,omitempty"`
	Reasons  []string `json:"reasons"` // why it is so, a sentence each
}

// An Alarm is something that somebody should look at.
type Alarm struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Resource  string `json:"resource,omitempty"`
	ID        string `json:"id,omitempty"` // of the lease
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	Since     Time   `json:"since"` // when it began to stand
	Last      Time   `json:"last"`  // when it happened last
	Count     int    `json:"count"` // how often since then
	Text      string `json:"text"`  // what happened, in a sentence
}

// A Unit is a slot with a name.
type Unit struct {
	Name   string `json:"name"`
	Lease  string `json:"lease,omitempty"`  // the id of the lease that has it
	Holder string `json:"holder,omitempty"` // who has it, or had it last
	Rests  bool   `json:"rests,omitempty"`  // nobody can have it yet, after an unclean end
}

// A Waiter stands in a queue.
type Waiter struct {
	Position int               `json:"position"`
	Priority int               `json:"priority,omitempty"`
	Slots    int               `json:"slots,omitempty"` // 0: all
	ID       string            `json:"id"`
	Holder   string            `json:"holder"`
	Session  string            `json:"session,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Since    Time              `json:"since"`
	Until    *Time             `json:"until"`
	Forecast Duration          `json:"forecast,omitzero"` // in how long its turn usually comes
}

// An Ending is how the last lease of a resource ended.
type Ending struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
	How    string `json:"how"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     Time   `json:"at"`
}

// A Session is a promise of liveness.
type Session struct {
	Namespace   string            `json:"namespace"`
	ID          string            `json:"id"`
	TTL         Duration          `json:"ttl"`
	Expires     Time              `json:"expires"`
	RemainingMS int64             `json:"remaining_ms"`
	Opened      Time              `json:"opened"`
	Claims      int               `json:"claims"` // leases, waiters and records bound to it
	Labels      map[string]string `json:"labels,omitempty"`
	Warning     string            `json:"warning,omitempty"`

	// Interventions counts what others did to claims of the session: broken, ended or
	// changed them. Intervened are the ids that the last of those claims had before, at
	// most 256, oldest first. Servers below level 4 send neither.
	Interventions *uint64  `json:"interventions,omitempty"`
	Intervened    []string `json:"intervened,omitempty"`
}

// An Event is one thing that happened. In a watch its id is its Position.
type Event struct {
	Namespace string `json:"namespace"`
	Revision  uint64 `json:"revision"`
	N         uint32 `json:"n"`
	Kind      string `json:"kind"`
	How       string `json:"how,omitempty"`
	At        Time   `json:"at"`
	Until     *Time  `json:"until,omitempty"`
	Resource  string `json:"resource,omitempty"`
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Alarm     string `json:"alarm,omitempty"`    // the kind of an alarm that was raised or cleared
	Version   uint64 `json:"version,omitempty"`  // of the record that was put
	Value     []byte `json:"value,omitempty"`    // of the record that was put, where values were asked for
	Previous  []byte `json:"previous,omitempty"` // the value before, where that was asked for and there was one

	Large         *Large `json:"large,omitempty"`          // instead of value, if that is a large one
	PreviousLarge *Large `json:"previous_large,omitempty"` // instead of previous
}

// A Deed is one thing that was done, or refused, with who did it. Index and N are its
// place in the log; what was refused for lack of right has none.
type Deed struct {
	Index     uint64 `json:"index,omitempty"`
	N         uint32 `json:"n,omitempty"`
	At        Time   `json:"at"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
	Outcome   string `json:"outcome"`           // "ok", "queued", or the code of the refusal
	Actor     string `json:"actor,omitempty"`   // as far as it was proven; else as it calls itself; "time" if nobody did it
	Address   string `json:"address,omitempty"` // of the other end of the connection
	Door      string `json:"door,omitempty"`
	Resource  string `json:"resource,omitempty"` // or the path of a record
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	How       string `json:"how,omitempty"` // with what ended
	By        string `json:"by,omitempty"`  // the operator, as it calls itself
	Reason    string `json:"reason,omitempty"`
}

// A Hold is one holder's time with a resource, once it is over.
type Hold struct {
	Index     uint64 `json:"index,omitempty"`
	N         uint32 `json:"n,omitempty"`
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	ID        string `json:"id"`
	Holder    string `json:"holder"`
	Token     uint64 `json:"token"`
	Session   string `json:"session,omitempty"`
	Since     Time   `json:"since"`
	Until     Time   `json:"until"`
	WaitedMS  int64  `json:"waited_ms"` // in the queue, before
	How       string `json:"how"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it was broken
}

// A List is one page; Next is where to go on, empty at the end.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// An EventPage is some of the events that are still known, newest last. Next leads
// to those before them. Gone says that there were earlier ones, which nobody knows
// any more.
type EventPage struct {
	Items []Event `json:"items"`
	Next  string  `json:"next,omitempty"`
	Gone  bool    `json:"gone,omitempty"`
}

// A Hello begins a watch: it shows every event after Position. Time is the
// server's calendar, for those who draw countdowns.
type Hello struct {
	Namespace string   `json:"namespace"`
	Position  Position `json:"position"`
	Time      Time     `json:"time"`
}

// A Gone ends a watch that asked for events which are not known any more. Oldest
// is the first position from which a watch can go on, Revision the newest one:
// read the resources again and watch since that, or go on from Oldest with a gap.
type Gone struct {
	Since    Position `json:"since"`
	Oldest   Position `json:"oldest"`
	Revision uint64   `json:"revision"`
}

// A Cut ends a watch whose reader took too long for what it was sent. It got all
// up to Resume, and can go on from there.
type Cut struct {
	Resume Position `json:"resume"`
}

// A Version says what the server is.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Nothing is the answer to what leaves nothing to say: a release, the close of a
// session.
type Nothing struct{}

// A Problem is an error, as application/problem+json.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	// With code "held": the lease in the way, and the queue behind it.
	Resource    string `json:"resource,omitempty"`
	ID          string `json:"id,omitempty"`
	State       string `json:"state,omitempty"`
	Holder      string `json:"holder,omitempty"`
	Since       *Time  `json:"since,omitempty"`
	Expires     *Time  `json:"expires,omitempty"`
	RemainingMS *int64 `json:"remaining_ms,omitempty"`
	AvailableAt *Time  `json:"available_at,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Token       uint64 `json:"token,omitempty"`
	Waiting     *int   `json:"waiting,omitempty"`
	Position    int    `json:"position,omitempty"`

	// Forecast is in how long a turn usually comes, where that was learned.
	Forecast Duration `json:"forecast,omitzero"`

	// With code "refused", if to wait would never have ended: who waits for what.
	Cycle []Wait `json:"cycle,omitempty"`
}

// A Wait is one step of a cycle: a holder that waits for a resource behind the holder
// of the next step.
type Wait struct {
	Holder   string `json:"holder"`
	Resource string `json:"resource"`
}

// A Time is written as RFC 3339 with milliseconds, in UTC.
type Time struct{ time.Time }

// A Duration is written as people write it: "30s", "1h30m", "2d".
type Duration time.Duration

// A TTL is a Duration above zero, or explicitly none (null), or what was learned of the
// resource suggests ("auto"). The zero TTL stands for one that was not given.
type TTL struct {
	Duration Duration
	None     bool
	Auto     bool
}

// A Position is a place in the events of a namespace. "42.1" is event 1 of
// revision 42, and "42" the last one of that revision, whichever that is.
type Position struct {
	Revision uint64
	N        uint32
}

// Whole is the N of a position that is written without one.
const Whole = math.MaxUint32

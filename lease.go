package leasehold

import "time"

// DefaultNamespace is the namespace of names that are given without one.
const DefaultNamespace = "default"

// A Token is the number that a holder shows to the system it protects. Every grant in a
// namespace carries a larger Token than each grant before it, so a store that remembers the
// largest floor it saw can refuse a holder that lost its lease without noticing. Tokens stay
// below 2^53, so that every JSON reader can represent them exactly.
type Token uint64

// MaxToken is the largest possible token.
const MaxToken Token = 1<<53 - 1

// MaxRaise is the largest token above which an operator can raise those of a namespace. As many again are
// left after it, so that a slip of the keyboard does not use them up.
const MaxRaise Token = 1 << 52

// A Revision counts the commands that changed something in a namespace.
// Renewals have none.
type Revision uint64

// Labels say more about a holder or a session: who, host, operation, version.
// They are kept sorted by key, each key once.
type Labels []Label

// A Label is one key with its value.
type Label struct{ Key, Value string }

// State is the state of a resource, which is that of its newest lease.
type State uint8

// The five states. The last two remember the holder whose lease ended. Wire formats
// number them: add at the end only.
const (
	Available State = iota + 1
	Leased
	Breaking
	Broken
	Expired
)

var stateNames = [...]string{
	Available: "available", Leased: "leased", Breaking: "breaking", Broken: "broken", Expired: "expired",
}

func (s State) String() string { return name(stateNames[:], int(s)) }

// How is the way in which a lease, or the wait for one, ended.
type How uint8

// The ways to end. Wire formats number them: add at the end only.
const (
	Released       How = iota + 1 // by its holder
	ByTTL                         // it was not renewed in time
	ByHoldLimit                   // it was held for the longest time allowed
	ByBreak                       // by an operator
	SessionClosed                 // its session was closed
	SessionExpired                // its session was not renewed
	IDChanged                     // it goes on under another id
	Withdrawn                     // the waiter left the queue
	WaitOver                      // the waiter's time was up
	NoSlots                       // the waiter needs more slots than there are now
	Abandoned                     // its session was closed for a holder that died
)

var howNames = [...]string{
	Released: "released", ByTTL: "expired", ByHoldLimit: "hold limit", ByBreak: "broken",
	SessionClosed: "session closed", SessionExpired: "session expired", IDChanged: "changed",
	Withdrawn: "withdrawn", WaitOver: "wait over", NoSlots: "not enough slots any more",
	Abandoned: "abandoned",
}

func (h How) String() string { return name(howNames[:], int(h)) }

// Clean reports whether the holder knew of the end. After an unclean end a grace may pass before
// the next grant.
func (h How) Clean() bool {
	switch h {
	case ByTTL, ByHoldLimit, ByBreak, SessionExpired, Abandoned:
		return false
	}
	return true
}

// A Lease is the right of one holder to a resource until a moment.
type Lease struct {
	Namespace string
	Resource  string
	ID        string
	Holder    string
	Labels    Labels
	Reason    string
	Session   string // the session it is bound to, if any
	State     State

	Token Token // of this grant
	Floor Token // the smallest token still alive on the resource

	Slots int      // how many of the resource's slots it takes; 0: all, exclusively
	Units []string // the names of its slots, if they have names

	TTL       time.Duration // 0: it has none of its own
	HoldLimit time.Duration // the total time it may be held, renewals included; 0: no limit

	// Remaining is what is left at the stamp of the answer that carries it. A holder adds
	// it to the time before it sent the request, never to the time the answer came. It has
	// no meaning if Expires is zero.
	Remaining time.Duration

	Acquired    time.Time
	Expires     time.Time // zero: it ends by release or break alone
	AvailableAt time.Time // zero unless a grace runs after its unclean end
	Revision    Revision  // of its last change that was not a renewal

	// After is the unclean end of the lease before it, if the resource's definition says to
	// warn the next holder.
	After *Ending

	Interventions uint64 // as in Session, of its own

	Foreign string // the id that a foreign protocol gave it; empty: it came by none

	Door  string    // the door that it was asked for through; empty: not known
	Note  string    // what its holder last said with a renewal, such as "epoch 3 of 10"
	Noted time.Time // when that was

	// Reserved is the next reservation of the resource, if one begins within a day. It is for people to read, and part
	// of no format: an answer that is remembered is shown without it.
	Reserved *Upcoming
}

// A Waiter is one entry in the queue of a resource.
type Waiter struct {
	Namespace string
	Resource  string
	ID        string // of the lease it will become
	Holder    string
	Labels    Labels
	Reason    string
	Session   string
	Slots     int // as in Lease
	Priority  int // larger ones go first, equal ones in the order of arrival
	Position  int // 1 is next; of several resources at once, the one where it is furthest back
	Since     time.Time
	Until     time.Time     // when it stops waiting
	Forecast  time.Duration // how long until its turn usually comes; 0: not known

	ForecastError time.Duration // how far the forecast may be off, four times of five; 0: not known

	Foreign string // as in Lease
}

// An Ending is what a resource remembers of its last lease.
type Ending struct {
	ID     string
	Holder string
	Token  Token
	How    How
	By     string // who broke it
	Reason string // why it was broken
	At     time.Time

	Foreign string        // as in Lease
	TTL     time.Duration // of the lease; 0: it had none of its own
}

func name(names []string, i int) string {
	if i <= 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

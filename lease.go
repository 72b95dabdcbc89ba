package leasehold

import "time"

// DefaultNamespace is where a name lives when nobody said otherwise.
const DefaultNamespace = "default"

// A Token is the number that a holder shows to the system it protects. Every
// grant in a namespace carries a larger Token than each grant before it, so a
// store that remembers the largest floor it saw can refuse a holder that lost
// its lease without noticing. Tokens stay below 2^53: every JSON reader can
// hold them exactly.
type Token uint64

// MaxToken is the largest token there can be.
const MaxToken Token = 1<<53 - 1

// A Revision counts the commands that changed something in a namespace.
// Renewals have none.
type Revision uint64

// Labels say more about a holder or a session: who, host, operation, version.
// They are kept sorted by key, each key once.
type Labels []Label

// A Label is one key with its value.
type Label struct{ Key, Value string }

// State is what a resource looks like, which is the state of its newest lease.
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

var stateNames = [...]string{Available: "available", Leased: "leased", Breaking: "breaking", Broken: "broken", Expired: "expired"}

func (s State) String() string { return name(stateNames[:], int(s)) }

// How says in what way a lease, or the wait for one, ended.
type How uint8

// The ways to end. Wire formats number them: add at the end only.
const (
	Released       How = iota + 1 // given back by its holder
	ByTTL                         // its time ran out
	ByHoldLimit                   // it was renewed, but held as long as it may be
	ByBreak                       // an operator ended it
	SessionClosed                 // its session was closed on purpose
	SessionExpired                // its session was not renewed
	IDChanged                     // it goes on under another id
	Withdrawn                     // the waiter left the queue
	WaitOver                      // the waiter had waited as long as it wished to
	NoSlots                       // the waiter needs more slots than there are now
)

var howNames = [...]string{
	Released: "released", ByTTL: "expired", ByHoldLimit: "hold limit", ByBreak: "broken",
	SessionClosed: "session closed", SessionExpired: "session expired", IDChanged: "changed",
	Withdrawn: "withdrawn", WaitOver: "wait over", NoSlots: "not enough slots any more",
}

func (h How) String() string { return name(howNames[:], int(h)) }

// Clean tells whether the holder knew of the end. After an unclean one the
// resource may rest for a grace before it is granted again.
func (h How) Clean() bool {
	switch h {
	case ByTTL, ByHoldLimit, ByBreak, SessionExpired:
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

	Slots int      // how many of the resource's slots it takes; 0: all, it is exclusive
	Units []string // the names of the slots it got, if they have any

	TTL       time.Duration // 0: it has none of its own
	HoldLimit time.Duration // the longest that it may be held in all, as asked for or defined; 0: no limit

	// Remaining is what is left at the stamp of the answer that carries it.
	// A holder adds it to the time before it sent the request, never to the
	// time the answer came. It means nothing when Expires is zero.
	Remaining time.Duration

	Acquired    time.Time
	Expires     time.Time // zero: it ends only by release or break
	AvailableAt time.Time // zero unless a grace runs after its unclean end
	Revision    Revision  // of its last change that was not a renewal

	// After is the unclean end of the lease before it, if the resource's definition
	// says that the next holder is to be warned of one.
	After *Ending

	Interventions uint64 // as in Session, of its own

	Foreign string // the id that a foreign protocol gave it; empty: it came by none
}

// A Waiter stands in the queue of a resource.
type Waiter struct {
	Namespace string
	Resource  string
	ID        string // of the lease it will become
	Holder    string
	Labels    Labels
	Reason    string
	Session   string
	Slots     int // as in Lease
	Priority  int // larger ones go first; equal ones in the order in which they came
	Position  int // 1 is next; of several resources at once, the one where it is furthest back
	Since     time.Time
	Until     time.Time     // when it stops waiting
	Forecast  time.Duration // in how long its turn usually comes; 0: nobody can tell
	Foreign   string        // as in Lease
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

// A Status is everything there is to see of one resource.
type Status struct {
	Namespace   string
	Resource    string
	State       State
	Capacity    int // its slots; 1 unless a definition or a holder said otherwise
	Used        int // of them, those that are taken
	Units       []Unit
	Holding     int     // how many hold it
	Holders     []Lease // the first of them, by token
	Waiting     int
	Queue       []Waiter // the first ones, in order
	Last        *Ending
	AvailableAt time.Time // zero unless a grace runs and nothing is free before its end

	// Unacknowledged is an unclean end after which nothing is granted until somebody
	// acknowledges it; nil if there is none.
	Unacknowledged *Ending

	Usual *Usual // nil: nothing is learned yet
}

// A Usual is what the last leases on a resource, and the last waits for it, were like.
// Half of them took at most P50, nineteen of twenty at most P95. Of either the last 64
// are remembered, and times to within a sixteenth.
type Usual struct {
	Holds   int // leases that ended
	HoldP50 time.Duration
	HoldP95 time.Duration
	Unclean int // of them, those that ended uncleanly

	Waits   int // waiters that got their turn; whoever need not wait is none
	WaitP50 time.Duration
	WaitP95 time.Duration
	Queue   int // how many usually wait when one of them gets its turn, itself included
}

// An Advice is the TTL that suits a resource, by what was learned of it.
type Advice struct {
	Namespace string
	Resource  string
	TTL       time.Duration
	Learned   bool // false: too little is known, and TTL is merely the default

	Least    time.Duration // below it a pause as was seen already costs the lease
	Cheapest time.Duration // where renewals and time without a holder cost the least together
	Most     time.Duration // above it whoever waits for a holder that is gone waits too long

	Renewals int           // in one TTL
	Interval time.Duration // from one to the next
	TakeOver time.Duration // how long after a holder went away its lease ends, on average; TTL at worst
	Grace    time.Duration // that the resource rests after that
	Usual    *Usual        // nil: nothing is learned yet
	Reasons  []string      // why it is so, a sentence each
}

// A Unit is a slot that has a name.
type Unit struct {
	Name   string
	Lease  string // the id of the lease that has it; empty: none
	Holder string // who has it, or had it last
	Rests  bool   // nobody can have it yet, after an unclean end
}

// Unclean is what follows the unclean end of a lease.
type Unclean uint8

// What can follow. Wire formats number them: add at the end only.
const (
	AllowNext            Unclean = iota // the next holder gets the resource after the grace
	WarnNext                            // and is told of it
	AwaitAcknowledgement                // nobody gets it until somebody acknowledged the end
)

var uncleanNames = [...]string{AllowNext: "allow", WarnNext: "warn", AwaitAcknowledgement: "acknowledge"}

func (u Unclean) String() string {
	if int(u) >= len(uncleanNames) {
		return "unknown"
	}
	return uncleanNames[u]
}

// UncleanOf reads an Unclean back from its name.
func UncleanOf(s string) (Unclean, bool) {
	for i, name := range uncleanNames {
		if name == s {
			return Unclean(i), true
		}
	}
	return 0, false
}

// A Definition is what was set for a resource, or for all under a prefix. Of those
// that fit a resource the one with the longest path applies, as a whole.
type Definition struct {
	Path string // of a resource; or a prefix, which ends with a slash ("/" alone: everything)

	Capacity int      // slots; 0: as the first holder says
	Units    []string // the names of the slots, whose number is then the capacity

	DefaultTTL time.Duration // of an acquire that names none; 0: DefaultTTL
	LargestTTL time.Duration // 0: MaxTTL
	HoldLimit  time.Duration // the longest that a lease may be held, however often it is renewed; 0: none
	Grace      time.Duration // the rest after an unclean end, at least
	Expected   time.Duration // the longest that a lease should be held; longer raises an alarm; 0: as learned
	Unclean    Unclean

	Revision Revision // of its last change
}

// A Session is a promise of liveness: what is bound to it ends with it, and one
// renewal renews all.
type Session struct {
	Namespace string
	ID        string
	TTL       time.Duration
	Labels    Labels
	Remaining time.Duration // as in Lease
	Opened    time.Time
	Expires   time.Time
	Claims    int // leases, waiters and records bound to it

	// Interventions counts what others did to its leases: broke, ended or changed them. A
	// holder that hears of the same number again knows that its leases are as they were.
	Interventions uint64
	// Intervened names the leases of the newest interventions, the newest last.
	Intervened []string
}

// A Record is a named value. Its path is one of the namespace, and has nothing to
// do with a resource that is called the same.
type Record struct {
	Path    string
	Value   string   // any bytes
	Large   *Large   // instead of Value: where the bytes of a large value are
	Create  Revision // that made it
	Mod     Revision // that changed it last
	Version uint64   // 1 when it was made, one more with each change
	Session string   // the session it ends with, if any
	Token   Token    // the largest that it was written under; a smaller one is turned away
}

// Kind says what happened in an Event.
type Kind uint8

// The kinds of events. Wire formats number them: add at the end only.
const (
	Queued   Kind = iota + 1 // somebody began to wait
	Acquired                 // a lease was granted
	Changed                  // it got another id or holder
	BreakSet                 // it will be broken at Event.Until
	Ended                    // it ended; How says in what way
	Left                     // a waiter left the queue without a lease
	SessionOpened
	SessionEnded
	RecordPut     // a record was made or changed
	RecordDeleted // with How if its session's end took it
	Asked         // somebody sent the holder a message, which is the Reason
	Moved         // an operator gave a waiter another priority
	Defined       // a definition was set for Resource, which may be a prefix
	Undefined     // it was taken away
	Acknowledged  // somebody acknowledged the unclean end of the lease of ID
	Alarmed       // an alarm began to stand; Alarm says which
	AlarmCleared  // it does not stand any more
)

var kindNames = [...]string{
	Queued: "queued", Acquired: "acquired", Changed: "changed", BreakSet: "breaking", Ended: "ended",
	Left: "left", SessionOpened: "session opened", SessionEnded: "session ended",
	RecordPut: "put", RecordDeleted: "deleted", Asked: "asked", Moved: "moved",
	Defined: "defined", Undefined: "undefined", Acknowledged: "acknowledged",
	Alarmed: "alarmed", AlarmCleared: "alarm cleared",
}

func (k Kind) String() string { return name(kindNames[:], int(k)) }

// An Event is one thing that happened in a namespace. Revision and N order it:
// N counts the events of one command from zero.
type Event struct {
	Namespace string
	Revision  Revision
	N         uint32
	Kind      Kind
	How       How // with Ended, Left and SessionEnded; with RecordDeleted if a session's end did it
	At        time.Time
	Until     time.Time // with Acquired, Changed and BreakSet: when it ends if nothing is done
	Resource  string    // or the path of the record
	ID        string
	Holder    string
	Token     Token
	Session   string
	By        string
	Reason    string
	Alarm     AlarmKind // with Alarmed and AlarmCleared

	Hold *Hold // what is over: with Ended, and with Changed if the holder is another

	Record   *Record // with RecordPut: as it is now
	Previous *Record // with RecordPut and RecordDeleted: as it was; nil if it is new

	Foreign string // as in Lease
}

// AlarmKind says what an alarm is about.
type AlarmKind uint8

// The kinds of alarms. The first two stand until what they tell of is over; the others
// tell of something past, and stand for AlarmMemory. Wire formats number them: add at
// the end only.
const (
	HeldLong    AlarmKind = iota + 1 // a lease is held for longer than was expected, or is usual
	LongQueue                        // more wait than usual
	UncleanEnd                       // a lease ended without its holder giving it back
	Flapping                         // holders of a resource went away again and again
	LateRenewal                      // a renewal came with at most a tenth of the TTL left
)

// AlarmKinds lists every kind.
var AlarmKinds = []AlarmKind{HeldLong, LongQueue, UncleanEnd, Flapping, LateRenewal}

var alarmNames = [...]string{
	HeldLong: "held-long", LongQueue: "long-queue", UncleanEnd: "unclean-end", Flapping: "flapping", LateRenewal: "late-renewal",
}

func (k AlarmKind) String() string { return name(alarmNames[:], int(k)) }

// AlarmKindOf reads a kind back from its name; zero if there is none of that name.
func AlarmKindOf(s string) AlarmKind {
	for _, k := range AlarmKinds {
		if k.String() == s {
			return k
		}
	}
	return 0
}

// Past tells whether alarms of a kind tell of something that is over.
func (k AlarmKind) Past() bool { return k != HeldLong && k != LongQueue }

// AlarmMemory is how long an alarm about something past stands after it happened last.
const AlarmMemory = time.Hour

// An Alarm is something that somebody should look at. There is one for each thing, also
// if it happens again while the alarm stands.
type Alarm struct {
	Namespace string
	Kind      AlarmKind
	Resource  string
	ID        string // of the lease
	Holder    string
	Token     Token
	Session   string
	Since     time.Time // when it began to stand
	Last      time.Time // when it happened last
	Count     int       // how often since then
	Text      string    // what happened, in a sentence
}

// A Hold is one holder's time with a resource, once it is over.
type Hold struct {
	ID     string
	Holder string
	Token  Token
	Since  time.Time
	Until  time.Time
	Waited time.Duration // in the queue, before
}

// An Origin says where a request came from. It decides nothing, and is kept for those
// who ask later who did what.
type Origin struct {
	Actor   string // who sent it, as far as that was proven; empty: nobody asked
	Address string // of the other end of the connection
	Door    string // through which it came in
}

func name(names []string, i int) string {
	if i <= 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

package leasehold

import "time"

// Kind is what happened in an Event.
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
	RecordPut     // a record was created or changed
	RecordDeleted // with How if it ended with its session
	Asked         // somebody sent the holder a message, which is the Reason
	Moved         // an operator gave a waiter another priority
	Defined       // a definition was set for Resource, which may be a prefix
	Undefined     // a definition was removed
	Acknowledged  // somebody acknowledged the unclean end of the lease of ID
	Alarmed       // an alarm was raised; Alarm says which
	AlarmCleared  // an alarm was cleared

	Reserved             // somebody reserved Resource until Until; ID names the reservation
	ReservationBegun     // what was reserved is kept for its claim
	ReservationFreed     // it was used, or nobody claimed it; Reason says which
	ReservationCancelled // by By, or an occurrence was left out; Reason says why
)

var kindNames = [...]string{
	Queued: "queued", Acquired: "acquired", Changed: "changed", BreakSet: "breaking", Ended: "ended",
	Left: "left", SessionOpened: "session opened", SessionEnded: "session ended",
	RecordPut: "put", RecordDeleted: "deleted", Asked: "asked", Moved: "moved",
	Defined: "defined", Undefined: "undefined", Acknowledged: "acknowledged",
	Alarmed: "alarmed", AlarmCleared: "alarm cleared",
	Reserved: "reserved", ReservationBegun: "reservation begun", ReservationFreed: "reservation freed",
	ReservationCancelled: "reservation cancelled",
}

// ByBackfill is the By of an Acquired: the units were kept for somebody else, who is expected to wait for longer than
// they are used.
const ByBackfill = "backfill"

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
	Until     time.Time // with Acquired, Changed and BreakSet: when it ends by time
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

	Owner *Owner // of the lease, the session or the record; nil: nobody proven

	// Own marks the end of a lease that its own session released. Only the server that applied the
	// release knows it: it is part of no format, and lost with a snapshot.
	Own bool
}

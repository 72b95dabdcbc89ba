package leasehold

import "time"

// AlarmKind says what an alarm is about.
type AlarmKind uint8

// The kinds of alarms. The first two, InQuarantine and TokenEnding are active until their cause is
// over; the others are about something past, and are active for AlarmMemory. Wire formats number
// them: add at the end only.
const (
	HeldLong     AlarmKind = iota + 1 // a lease is held for longer than expected or usual
	LongQueue                         // more wait than usual
	UncleanEnd                        // a lease ended without a release
	Flapping                          // several holders of a resource died in a row
	LateRenewal                       // a renewal came with at most a tenth of the TTL left
	InQuarantine                      // after a restore nothing is granted; it is about no resource
	TokenEnding                       // an access token ends soon; it is about no resource
)

// AlarmKinds lists every kind.
var AlarmKinds = []AlarmKind{HeldLong, LongQueue, UncleanEnd, Flapping, LateRenewal, InQuarantine, TokenEnding}

var alarmNames = [...]string{
	HeldLong: "held-long", LongQueue: "long-queue", UncleanEnd: "unclean-end",
	Flapping: "flapping", LateRenewal: "late-renewal", InQuarantine: "quarantine",
	TokenEnding: "token-ending",
}

func (k AlarmKind) String() string { return name(alarmNames[:], int(k)) }

// AlarmKindOf returns the kind with a name; 0 if there is none.
func AlarmKindOf(s string) AlarmKind {
	for _, k := range AlarmKinds {
		if k.String() == s {
			return k
		}
	}
	return 0
}

// Past reports whether alarms of a kind are about something past.
func (k AlarmKind) Past() bool {
	return k != HeldLong && k != LongQueue && k != InQuarantine && k != TokenEnding
}

// AlarmMemory is how long an alarm about something past stays active after it happened last.
const AlarmMemory = time.Hour

// An Alarm is something that somebody should look at. There is one for each cause, even if it
// happens again while the alarm is active.
type Alarm struct {
	Namespace string
	Kind      AlarmKind
	Resource  string
	ID        string // of the lease
	Holder    string
	Token     Token
	Session   string
	Order     uint64    // of this occurrence; another one each time it happens
	Since     time.Time // when it was raised
	Last      time.Time // when it happened last
	Count     int       // how often since it was raised
	Text      string    // what happened, in a sentence
}

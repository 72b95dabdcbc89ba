package leasehold

import "time"

// AtStart is what happens to leases that are in the way of a reservation when it begins.
type AtStart uint8

// What can happen. Wire formats number them: add at the end only.
const (
	WaitAtStart AtStart = iota // nothing: the reservation comes next
	WarnAtStart                // their holders are asked once more
	EndAtStart                 // they are broken, which their holders were told
)

var atStartNames = [...]string{WaitAtStart: "wait", WarnAtStart: "warn", EndAtStart: "end"}

func (a AtStart) String() string {
	if int(a) >= len(atStartNames) {
		return "unknown"
	}
	return atStartNames[a]
}

// AtStartOf returns the AtStart with a name.
func AtStartOf(s string) (AtStart, bool) {
	for i, name := range atStartNames {
		if name == s {
			return AtStart(i), true
		}
	}
	return 0, false
}

// ReservationState is how far a reservation has come.
type ReservationState uint8

// The states.
const (
	Planned ReservationState = iota + 1 // it has not begun
	Begun                               // nobody claimed it yet
	Claimed                             // a claim waits for the resource
	InUse                               // its claim is a lease
	Over                                // it was used, freed or cancelled
)

var reservationStateNames = [...]string{
	Planned: "planned", Begun: "begun", Claimed: "claimed", InUse: "in use", Over: "over",
}

func (s ReservationState) String() string { return name(reservationStateNames[:], int(s)) }

// A Reservation is a promise of a resource, or of slots of it, from one moment to another.
type Reservation struct {
	Namespace string
	ID        string
	Resource  string
	Holder    string
	Reason    string
	Slots     int // 0: all
	Select    *Select
	From      time.Time
	Until     time.Time
	State     ReservationState
	ClaimBy   time.Time // with Begun: when it is freed unless somebody claims it
	Lease     string    // the id of the lease, or of the waiter, by which it is claimed
	Units     []string  // of a pool, as they are planned
	Series    string    // the id of the recurring reservation that it is one of
	Why       string    // it is over
}

// A Series is a reservation that recurs.
type Series struct {
	Namespace string
	ID        string
	Resource  string
	Holder    string
	Reason    string
	Slots     int
	Select    *Select
	Rule      Rule
	Expanded  time.Time // up to where its occurrences are planned
}

// A Rule says when a reservation recurs, on somebody's calendar.
type Rule struct {
	Zone   string        // of the tz database, such as Europe/Berlin
	Days   Weekdays      // on which it begins
	At     time.Duration // after midnight, by the clock on the wall
	Length time.Duration
	Until  time.Time // no occurrence begins then or later; zero: they never end
}

// Weekdays is a set of days of the week: bit 0 is Sunday.
type Weekdays uint8

// AllDays has every day of the week.
const AllDays Weekdays = 1<<7 - 1

// Has reports whether a day is in the set.
func (w Weekdays) Has(d time.Weekday) bool { return w&(1<<d) != 0 }

// An Upcoming is the next reservation of a resource that somebody holds.
type Upcoming struct {
	ID     string
	Holder string
	Reason string
	From   time.Time
	Until  time.Time
}

// Limits of reservations.
const (
	MaxReservations   = 65536 // of a namespace
	MaxReservationsOf = 4096  // of one resource
	MaxPlannedUnits   = 65536 // units that are planned for those of one pool, each of them counted by itself
	MaxSeries         = 1024  // of a namespace
	MaxStarts         = 64    // occurrences that one command plans

	MinReservation      = time.Minute
	MaxReservation      = 30 * 24 * time.Hour  // how long one lasts
	ReservationsPlanned = 14 * 24 * time.Hour  // how far ahead the occurrences of a rule are planned
	ReservationHorizon  = 366 * 24 * time.Hour // how far ahead one may begin

	// ReservationNotice is how long before its start those in the way of a reservation are told, and ClaimWithin how
	// long after its start it is kept for somebody to claim it.
	ReservationNotice = 15 * time.Minute
	ClaimWithin       = 15 * time.Minute
)

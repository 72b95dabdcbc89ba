package leasehold

import "time"

// Unclean is what happens after the unclean end of a lease.
type Unclean uint8

// What can follow. Wire formats number them: add at the end only.
const (
	AllowNext            Unclean = iota // the resource is granted after the grace
	WarnNext                            // the next holder is told as well
	AwaitAcknowledgement                // the resource is granted once somebody acknowledged the end
)

var uncleanNames = [...]string{AllowNext: "allow", WarnNext: "warn", AwaitAcknowledgement: "acknowledge"}

func (u Unclean) String() string {
	if int(u) >= len(uncleanNames) {
		return "unknown"
	}
	return uncleanNames[u]
}

// UncleanOf returns the Unclean with a name.
func UncleanOf(s string) (Unclean, bool) {
	for i, name := range uncleanNames {
		if name == s {
			return Unclean(i), true
		}
	}
	return 0, false
}

// A Definition is what was set for a resource, or for all under a prefix. Of those that match a
// resource, the one with the longest path applies, as a whole.
type Definition struct {
	Path string // of a resource; or a prefix, which ends with a slash ("/" alone: everything)

	Capacity int      // slots; 0: the first holder decides
	Units    []string // the names of the slots, whose number is then the capacity

	DefaultTTL time.Duration // of an acquire that names none; 0: DefaultTTL
	LargestTTL time.Duration // 0: MaxTTL
	HoldLimit  time.Duration // the total time a lease may be held, renewals included; 0: no limit
	Grace      time.Duration // after an unclean end, at least
	Expected   time.Duration // how long a lease should be held at most; longer raises an alarm; 0: as learned
	Unclean    Unclean

	// Limits bound how many units of a pool with hosts a holder or a group has at the same time.
	Limits []UnitLimit

	// Idle is how long a lease may have units of a pool that nobody uses before its holder is asked to use them or give
	// them back; 0: it is never asked. IdleRelease breaks the lease when they are still not used after that time more;
	// 0: it is only asked.
	Idle        time.Duration
	IdleRelease time.Duration

	OnReservation AtStart // what happens to leases that are in the way of a reservation

	// Backfill grants units of a pool with hosts that are kept for somebody else to those whose kind usually gives
	// them back before that one can begin.
	Backfill bool

	Revision Revision // of its last change
}

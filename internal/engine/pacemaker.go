package engine

import (
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// maxSilence is how long cluster time may go unwritten while something counts on
// it: a new leader that knows no better goes on from the last stamp, and so adds
// at most this much to a lease.
const maxSilence = 10 * time.Second

// A Due says when time alone changes something; a core.State does.
type Due interface {
	Now() core.Time
	Due() (core.Time, bool)
	DueBy(now core.Time) bool
}

// NextLook returns the cluster time at which the pacemaker has to look again, and
// false if time alone changes nothing.
func NextLook(s Due) (core.Time, bool) {
	due, ok := s.Due()
	return min(due, s.Now()+core.Time(maxSilence)), ok
}

// TickDue reports whether the pacemaker has to propose a Tick at a cluster time.
func TickDue(s Due, now core.Time) bool {
	_, ok := s.Due()
	return ok && (now >= s.Now()+core.Time(maxSilence) || s.DueBy(now))
}

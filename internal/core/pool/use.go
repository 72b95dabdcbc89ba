package pool

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A Use is what the host of a unit said last about how it is used, and what follows from all that it said since the
// lease that has the unit began. It is never changed in place.
//
// What nobody reported is not known: a unit of a host that is silent is neither busy nor idle.
type Use struct {
	At      timeline.Time // when it was said
	Percent int           // how busy the unit was; UnknownPercent: its host cannot tell
	Memory  int           // that is taken, in MiB
	// Strangers are processes on the unit that belong to no lease that has it. While there are any, the unit is taken
	// without a lease and is not granted.
	Strangers []Process

	Idle  timeline.Time // since when all reports say that it is not used; 0: it is, or that is not known
	Asked timeline.Time // when the holder was asked to use it or give it back; 0: it was not

	Busy   time.Duration // that the lease used the unit
	Unused time.Duration // that the lease had it and did not
}

// A Process runs on a unit.
type Process struct {
	PID  int
	User string
	Name string
}

// UnknownPercent is the use of a unit whose host cannot tell.
const UnknownPercent = -1

// MaxSilence is how long what a host said is good for. A longer time between two reports is silence, and counts as
// neither busy nor idle. It is three reports, so that a single one may be lost.
const MaxSilence = 3 * time.Minute

// Next returns the use of a unit after one more report. since is when the lease that has the unit began; 0 if none has
// it.
func (u *Use) Next(now, since timeline.Time, said Use) *Use {
	if said.At = now; since == 0 {
		return &said
	}
	known := u.Fresh(now)
	if u == nil {
		u = &Use{}
	}
	said.Busy, said.Unused = u.Busy, u.Unused
	passed := time.Duration(now - max(u.At, since))
	switch {
	case said.Percent > 0 && known:
		said.Busy += passed
	case said.Percent == 0 && known:
		said.Unused += passed
	}
	if said.Percent != 0 {
		return &said
	}
	if said.Idle = now; known && u.Idle != 0 {
		said.Idle, said.Asked = u.Idle, u.Asked
	}
	return &said
}

// anew returns the use of a unit for the next who has it, without what was counted for the one before.
func (u *Use) anew() *Use {
	if u == nil {
		return nil
	}
	return &Use{At: u.At, Percent: u.Percent, Memory: u.Memory, Strangers: u.Strangers}
}

// Fresh reports whether a use is known now.
func (u *Use) Fresh(now timeline.Time) bool {
	return u != nil && time.Duration(now-u.At) <= MaxSilence
}

// Taken reports whether somebody uses a unit without a lease.
func (u *Unit) Taken() bool { return len(u.Strangers()) > 0 }

// Strangers returns the processes that use a unit without a lease.
func (u *Unit) Strangers() []Process {
	if u.Use == nil {
		return nil
	}
	return u.Use.Strangers
}

// Give lets a lease have a unit.
func (u *Unit) Give(lease, holder string) {
	u.Lease, u.Holder, u.Use = lease, holder, u.Use.anew()
}

// TakeBack takes a unit from the lease that had it.
func (u *Unit) TakeBack(now timeline.Time) {
	u.Lease, u.Freed, u.Use = "", now, u.Use.anew()
}

// Adopted returns the processes that a lease with some labels says are its own.
func Adopted(labels leasehold.Labels) (pids []int) {
	for _, l := range labels {
		if l.Key != leasehold.LabelPID {
			continue
		}
		for text := range strings.SplitSeq(l.Value, ",") {
			if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// fit reports whether a unit may be granted to a request once nobody has it. One that is taken without a lease may be
// granted to who names it and adopts all processes that are on it.
func (a *Ask) fit(u *Unit) bool {
	return u.Fit() || u.sound() && len(a.Units) > 0 && u.Taken() && !slices.ContainsFunc(u.Use.Strangers,
		func(p Process) bool { return !slices.Contains(a.Adopts, p.PID) })
}

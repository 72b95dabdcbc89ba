package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
)

// Caps bound how much there is in all namespaces together. They are part of the state, and a
// command changes them: if servers decided by their own settings, they would not agree. A cap
// refuses what is new. It never ends anything, and no renewal, release or hand-over looks at
// it, so there may be more than a cap allows after it was lowered, or after waiters became
// holders.

// setCaps changes the caps. With IfUnset it does so only if nobody has: every new leader
// proposes its own settings, and only the first may take effect.
func (t *turn) setCaps(c *SetCaps) Answer {
	if c.IfUnset && t.capsSet {
		return Answer{}
	}
	t.caps, t.capsSet = c.Caps.Or(t.caps), true
	return Answer{}
}

// mostAllowed returns the caps in force: those that were set, else the defaults.
func (s *State) mostAllowed() leasehold.Caps {
	return s.caps.Or(leasehold.DefaultCaps())
}

// Caps returns the caps, and how much there is of each.
func (v *view) Caps() (allowed, used leasehold.Caps) {
	t := &v.s.totals
	return v.s.mostAllowed(), leasehold.Caps{Leases: t.leases(), Sessions: t.sessions, Waiters: t.waiters,
		Namespaces: v.s.spaces.Len()}
}

// HasCaps reports whether a command has set the caps.
func (s *State) HasCaps() bool { return s.capsSet }

// roomForClaims refuses claims that would be more leases, or waiters, than there may be, or than the asker or the
// namespace may have.
func (l *look) roomForClaims(sp *space, n int, wait bool) *leasehold.Error {
	if failure := l.claimsWithinCaps(n, wait); failure != nil {
		return failure
	}
	return l.claimsWithinQuotas(sp.name, n, wait)
}

func (s *State) claimsWithinCaps(n int, wait bool) *leasehold.Error {
	most := s.mostAllowed()
	if wait {
		return full("waiters", s.totals.waiters, n, most.Waiters, "try again later")
	}
	return full("leases", s.totals.leases(), n, most.Leases, "release some")
}

func (s *State) roomForSession() *leasehold.Error {
	return full("sessions", s.totals.sessions, 1, s.mostAllowed().Sessions, "close some")
}

// full refuses n more of something if that would exceed the cap; nil if there is room.
func full(what string, used, n, most int, do string) *leasehold.Error {
	if used+n <= most {
		return nil
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(", %d more were asked for", n)
	}
	return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
		"the cluster has %d %s%s, and its cap is %d: %s, or raise the cap with leasehold cluster limits set", used,
		what, more, most, do)}
}

package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// What a resource learns from what happens on it, for forecasts, alarms and TTLs.

func (m More) usual() usage.Usual {
	if m.Usual == nil {
		return usage.Usual{}
	}
	return *m.Usual
}

// usual returns what a resource learned; nil if nothing is known of it.
func (sp *space) usual(path string) *usage.Usual {
	if r, ok := sp.resources.Get(path); ok {
		return r.more().Usual
	}
	return nil
}

// learnHold records on a resource how a lease on it went, which ended at some moment.
func (s *State) learnHold(sp *space, u usage.Usual, c *Claim, how leasehold.How, at Time) usage.Usual {
	ttl, gap := s.pulse(sp, c)
	u.AddHold(time.Duration(at-c.Since), how, ttl, gap, at)
	return u
}

// pulse returns the TTL that a lease lives by, its session's if it has one, and the largest
// part of it that passed without a renewal.
func (s *State) pulse(sp *space, c *Claim) (time.Duration, uint8) {
	if c.Session == "" {
		return c.TTL, c.Gap
	}
	if session, ok := sp.sessions.Get(c.Session); ok {
		return session.TTL, session.Gap
	}
	left := sp.left(c.Session)
	return left.TTL, left.Gap
}

// learnWait records on a resource that a waiter gets its turn, and how long it waited.
func (s *State) learnWait(r *Resource, c *Claim) {
	more := r.more()
	u := more.usual()
	u.AddWait(time.Duration(s.now-c.Since), r.Waiting+1)
	more.Usual = &u
	r.setMore(more)
}

// gap returns how much of a TTL has passed since the sign of life by which it ends at
// some moment.
func (s *State) gap(ttl time.Duration, expires Time) uint8 {
	return usage.Gap(ttl, time.Duration(expires-s.now))
}

// forecast returns when a resource will usually be free.
func (s *State) forecast(sp *space, r *Resource) usage.Forecast {
	if r.More == nil {
		return usage.Forecast{}
	}
	f := r.More.Usual.Forecast(r.Sharers())
	if !f.Known {
		return f
	}
	senior, rest := sp.senior(r), r.longestRest(s.now)
	switch {
	case senior != nil:
		f.First, f.Late = r.More.Usual.Left(time.Duration(s.now - senior.Since))
		if t := senior.terms(); t.BreakAt != 0 {
			f.First, f.Late = min(max(f.First, 0), time.Duration(t.BreakAt-s.now)), false
		}
		f.Known = !f.Late
	// Nobody can say when somebody will acknowledge the unclean end.
	case rest != nil && rest.Until == 0:
		f.Known = false
	case rest != nil:
		f.First = time.Duration(rest.Until - s.now)
	}
	if at := s.availableAfter(); at != 0 {
		f.First = max(f.First, time.Duration(at-s.now))
	}
	return f
}

// waiterForecast returns how long it usually takes until a waiter has its turn in all the
// queues that it is in, and how far that may be off; 0 if that is unknown for any of them.
func (l *look) waiterForecast(sp *space, c *Claim) (longest, off time.Duration) {
	for _, one := range l.together(sp, c) {
		r, _ := sp.resources.Get(one.Resource)
		f, ahead := l.forecastOf(sp, r, one), 0
		if other, _ := l.excludedBy(sp, one); other != nil {
			f = l.forecastOf(sp, other, nil)
		}
		if f.Each != 0 {
			ahead = rank(sp, one) - rank(sp, beforeAll(one.Resource))
		}
		d := f.After(ahead)
		if d == 0 {
			return 0, 0
		}
		if d > longest {
			longest, off = d, f.ErrorShown()
		}
	}
	return longest, off
}

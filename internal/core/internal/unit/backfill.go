package unit

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Backfill. What is kept for somebody in the queue of a pool is of no use while it waits for the rest. Where the
// definition says so, somebody behind it may have it whose kind usually gives it back before the first one can begin.
// Both are learned, and neither is promised: a job that takes longer than nineteen of twenty of its kind makes the
// first one wait for it, and nobody is cut off for that.
//
// Somebody becomes a borrower only when something has changed, and not by time alone: when those in a queue show that
// they are alive must not matter.

// How much backfill looks at: the units of a pool, and those who would borrow some.
const (
	maxLentUnits = 1024
	maxBorrowers = 64
)

// backfills reports whether a claim gets units that are kept for others, and picks them.
func (l *line) backfills(c *kernel.Claim, ask *pool.Ask) bool {
	if l.picks == nil || l.units.Empty() || l.lent == maxBorrowers {
		return false
	}
	lasts := l.lasts(c)
	if lasts == 0 {
		return false
	}
	l.lent++
	units := l.units.Borrow(ask, c.Holder, lasts)
	if units == nil {
		return false
	}
	l.picks.Pick(c.ID, units, true)
	l.borrows = true
	return true
}

// lasts returns how long a claim will be held at most, by its kind or by its own limit; 0 if nobody knows.
func (l *line) lasts(c *kernel.Claim) time.Duration {
	most := l.RecentOf(c).AtMost()
	if c.Terms != nil && c.Terms.HoldLimit != 0 && (most == 0 || c.Terms.HoldLimit < most) {
		most = c.Terms.HoldLimit
	}
	return most
}

// begins returns after which time a request that waits may have enough units, without those that are kept for others.
// What nobody knows may happen at once.
func (l *line) begins(ask *pool.Ask, kept func(*pool.Unit) bool) time.Duration {
	l.Take(l.pools.Cost(l.Namespace, l.path))
	soonest := leasehold.MaxHold
	var host string
	var free []time.Duration // when each unit of a host may be free, or of all hosts
	look := func() {
		if len(free) >= ask.N {
			slices.Sort(free)
			soonest = min(soonest, free[ask.N-1])
		}
	}
	l.pools.units.Units(l.path, nil, func(u *pool.Unit) bool {
		if u.Host != host && ask.OneHost() {
			look()
			host, free = u.Host, free[:0]
		}
		if u.Fit() && ask.Wants(u) && !kept(u) {
			free = append(free, l.freeAfter(u))
		}
		return true
	})
	look()
	return soonest
}

// freeAfter returns after which time a unit may be free; 0: at once, as far as anybody knows.
func (l *line) freeAfter(u *pool.Unit) time.Duration {
	lease := l.Claim(u.Lease)
	if lease == nil {
		return 0
	}
	after := l.RecentOf(lease).AtLeast(time.Duration(l.Now() - lease.Since))
	if end := lease.EndsAt(); end != 0 {
		after = min(after, time.Duration(max(0, end-l.Now())))
	}
	return after
}

package kernel

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A lease on units of a pool is idle when all of them were reported, and none was used, for as long as the definition
// says. Its holder is asked; if the definition says so, the lease is broken when that did not help.

// idleRule is the author of what follows from idleness.
const idleRule = "the idle rule"

// idleNotice is how long a holder has from the break of an idle lease to its end. What runs under it can save its work.
const idleNotice = time.Minute

// judgeIdle looks at the leases that have units of the host that reported.
func (t *turn) judgeIdle(sp *space, c *ReportUse) {
	d := sp.definition(c.Resource)
	if d.Idle == 0 {
		return
	}
	var leases []string
	sp.pools.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		// Units of one lease are mostly neighbours; to judge a lease twice does no harm.
		if u.Lease != "" && t.idleFor(u) >= d.Idle && (len(leases) == 0 || leases[len(leases)-1] != u.Lease) {
			leases = append(leases, u.Lease)
		}
		return true
	})
	for _, id := range leases {
		if claim, ok := sp.claims.Get(id); ok {
			t.judgeLease(sp, claim, d)
		}
	}
}

// idleFor returns how long a unit has not been used; 0 if that is not known.
func (s *State) idleFor(u *pool.Unit) time.Duration {
	if !u.Use.Fresh(s.now) || u.Use.Idle == 0 {
		return 0
	}
	return time.Duration(s.now - u.Use.Idle)
}

// leaseIdle returns how long nothing of a lease has been used, and when its holder was asked about it.
func (s *State) leaseIdle(sp *space, c *Claim) (idle time.Duration, asked Time) {
	known := 0
	sp.pools.Named(c.Resource, c.terms().Units, func(u *pool.Unit) bool {
		here := s.idleFor(u)
		if u.Lease != c.ID || here == 0 {
			return false
		}
		if known == 0 || here < idle {
			idle = here
		}
		if known == 0 || u.Use.Asked < asked {
			asked = u.Use.Asked // one that was used since forgot that it was asked
		}
		known++
		return true
	})
	if known < len(c.terms().Units) {
		return 0, 0
	}
	return idle, asked
}

// judgeLease asks the holder of an idle lease, or breaks the lease if asking did not help.
func (t *turn) judgeLease(sp *space, c *Claim, d leasehold.Definition) {
	t.work.take(len(c.terms().Units) / PerUnit)
	idle, asked := t.leaseIdle(sp, c)
	switch {
	case idle < d.Idle:
		return
	case asked == 0:
		event := t.event(sp, c, leasehold.Asked)
		event.By, event.Reason = idleRule, idleMessage(c, idle, d)
		t.emit(sp, event)
		t.changeUnits(sp, c, func(u *pool.Unit) {
			use := *u.Use
			use.Asked = t.now
			u.Use = &use
		})
	case d.IdleRelease != 0 && time.Duration(t.now-asked) >= d.IdleRelease && c.terms().BreakAt == 0:
		t.setBreak(sp, c, &Break{By: idleRule, Reason: "no use for " + timeline.Text(idle)}, t.now.Add(idleNotice))
	}
}

// idleMessage is what the holder of an idle lease is told.
func idleMessage(c *Claim, idle time.Duration, d leasehold.Definition) string {
	text := fmt.Sprintf("no use of %s for %s: please release what you do not need", firstFew(c.terms().Units),
		timeline.Text(idle))
	if d.IdleRelease != 0 {
		text += fmt.Sprintf("; without use for another %s, it is taken back", timeline.Text(d.IdleRelease))
	}
	return text
}

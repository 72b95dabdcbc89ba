package unit

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
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
func (p *pools) judgeIdle(t kernel.Turn, c *kernel.ReportUse) {
	d := t.Definition(c.Resource)
	if d.Idle == 0 {
		return
	}
	var leases []string
	p.units.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		// Units of one lease are mostly neighbours; to judge a lease twice does no harm.
		seen := len(leases) > 0 && leases[len(leases)-1] == u.Lease
		if u.Lease != "" && idleFor(t.Namespace, u) >= d.Idle && !seen {
			leases = append(leases, u.Lease)
		}
		return true
	})
	for _, id := range leases {
		if claim := t.Claim(id); claim != nil {
			p.judgeLease(t, claim, d)
		}
	}
}

// idleFor returns how long a unit has not been used; 0 if that is not known.
func idleFor(n kernel.Namespace, u *pool.Unit) time.Duration {
	if !u.Use.Fresh(n.Now()) || u.Use.Idle == 0 {
		return 0
	}
	return time.Duration(n.Now() - u.Use.Idle)
}

// leaseIdle returns how long nothing of a lease has been used, and when its holder was asked about it.
func (p *pools) leaseIdle(n kernel.Namespace, c *kernel.Claim) (idle time.Duration, asked kernel.Time) {
	known := 0
	p.units.Named(c.Resource, namesOf(c), func(u *pool.Unit) bool {
		here := idleFor(n, u)
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
	if known < len(namesOf(c)) {
		return 0, 0
	}
	return idle, asked
}

// judgeLease asks the holder of an idle lease, or breaks the lease if asking did not help.
func (p *pools) judgeLease(t kernel.Turn, c *kernel.Claim, d leasehold.Definition) {
	t.Take(len(namesOf(c)) / kernel.PerUnit)
	idle, asked := p.leaseIdle(t.Namespace, c)
	switch {
	case idle < d.Idle:
		return
	case asked == 0:
		event := t.Event(c, leasehold.Asked)
		event.By, event.Reason = idleRule, idleMessage(c, idle, d)
		t.Emit(event)
		p.changeUnits(t, c, func(u *pool.Unit) {
			use := *u.Use
			use.Asked = t.Now()
			u.Use = &use
		})
	case d.IdleRelease != 0 && time.Duration(t.Now()-asked) >= d.IdleRelease && c.Terms.BreakAt == 0:
		t.SetBreak(c, &kernel.Break{By: idleRule, Reason: "no use for " + timeline.Text(idle)}, t.Now().Add(idleNotice))
	}
}

// idleMessage is what the holder of an idle lease is told.
func idleMessage(c *kernel.Claim, idle time.Duration, d leasehold.Definition) string {
	text := fmt.Sprintf("no use of %s for %s: please release what you do not need", kernel.FirstFew(namesOf(c)),
		timeline.Text(idle))
	if d.IdleRelease != 0 {
		text += fmt.Sprintf("; without use for another %s, it is taken back", timeline.Text(d.IdleRelease))
	}
	return text
}

package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// How the units of a pool are used, as their hosts say. Everything that follows is decided when a report comes: time
// alone changes nothing, so a host that is silent makes nobody idle.

// notReported is why a unit is unfit that its host leaves out of its reports.
const notReported = "its host reports without it"

// reportUse takes over what a host says of its units.
func (t *turn) reportUse(c *ReportUse) Answer {
	sp := t.space(c.Namespace)
	if sp == nil || !sp.pools.Has(c.Resource) {
		return refuse(leasehold.NotFound, "%s is no pool with hosts: say which units the host has first", c.Resource)
	}
	for i := range c.Units {
		if u := sp.pools.Get(c.Resource, c.Units[i].Name); u == nil || u.Host != c.Host || u.Removed {
			return refuse(leasehold.NotFound, "host %q has no unit %q in %s: say which units it has first", c.Host,
				c.Units[i].Name, c.Resource)
		}
	}
	r := t.settle(sp, c.Resource)
	if t.unsettled {
		return Answer{Err: tooManyOver(c.Resource)}
	}
	t.work.take(LookCost + len(c.Units)/PerUnit)
	changed := t.takeReports(sp, r, c)
	if changed != "" {
		t.emit(sp, &leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: changed})
		t.wakeQueue(sp, c.Resource)
	}
	t.judgeIdle(sp, c)
	return Answer{}
}

// takeReports notes what a report says of each unit of its host. It returns what people have to know: that a unit may
// be granted now and could not before, or the other way round; empty if there is nothing.
func (t *turn) takeReports(sp *space, r *Resource, c *ReportUse) (changed string) {
	note := func(before, after *pool.Unit) {
		if before.Unfit == after.Unfit && slices.Equal(before.Strangers(), after.Strangers()) || changed != "" {
			return
		}
		switch {
		case after.Unfit != "":
			changed = fmt.Sprintf("%s is unfit: %s", after.Name, after.Unfit)
		case after.Taken():
			changed = after.Name + " is taken without a lease"
		default:
			changed = after.Name + " is well"
		}
		changed = changed[:min(len(changed), leasehold.MaxName)]
	}
	var reported btree.Set[string]
	var changes []*pool.Unit
	for i := range c.Units {
		said := &c.Units[i]
		reported.Insert(said.Name)
		before := sp.pools.Get(c.Resource, said.Name)
		u := *before
		u.Unfit = said.Unfit
		u.Use = before.Use.Next(t.now, t.heldSince(sp, before), pool.Use{Percent: said.Percent, Memory: said.Memory,
			Strangers: t.strangers(sp, r, before, said.Processes)})
		note(before, &u)
		changes = append(changes, &u)
	}
	sp.pools.OfHost(c.Resource, c.Host, func(before *pool.Unit) bool {
		if !reported.Contains(before.Name) && !before.Removed && before.Unfit != notReported {
			u := *before
			u.Unfit, u.Use = notReported, nil
			note(before, &u)
			changes = append(changes, &u)
		}
		return true
	})
	sp.pools.Set(changes...)
	return changed
}

// heldSince returns since when a unit has been held by the lease that has it; 0 if none has.
func (s *State) heldSince(sp *space, u *pool.Unit) Time {
	if claim, ok := sp.claims.Get(u.Lease); ok {
		return claim.Since
	}
	return 0
}

// leavesWithin is how long a process of a lease that has ended may take to go before it is a stranger: what its host
// saw may be older than the end.
const leavesWithin = 30 * time.Second

// strangers returns the processes on a unit that do not belong to the lease that has it.
func (s *State) strangers(sp *space, r *Resource, u *pool.Unit, all []UnitProcess) (list []pool.Process) {
	lease := u.Lease
	if r != nil && r.Claim != "" {
		lease = r.Claim // one lease has all units
	}
	var adopted []int
	if claim, ok := sp.claims.Get(lease); ok {
		adopted = pool.Adopted(claim.terms().Labels)
	}
	for _, p := range all {
		ended, past := sp.claims.Ended(p.Lease)
		switch {
		case p.Lease != "" && p.Lease == lease, slices.Contains(adopted, p.PID):
		case past && time.Duration(s.now-ended.At) <= leavesWithin:
		default:
			list = append(list, pool.Process{PID: p.PID, User: p.User, Name: p.Name})
		}
	}
	return list
}

// used returns how long the units of a lease were used and were not, as far as that was reported.
func (sp *space) used(c *Claim) (busy, idle time.Duration) {
	sp.eachUnit(c, func(u *pool.Unit) {
		if u.Use != nil {
			busy, idle = busy+u.Use.Busy, idle+u.Use.Unused
		}
	})
	return busy, idle
}

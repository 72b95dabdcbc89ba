package unit

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// How the units of a pool are used, as their hosts say. Everything that follows is decided when a report comes: time
// alone changes nothing, so a host that is silent makes nobody idle.

// notReported is why a unit is unfit that its host leaves out of its reports.
const notReported = "its host reports without it"

// ReportUse takes over what a host says of its units.
func (p *pools) ReportUse(t kernel.Turn, c *kernel.ReportUse) kernel.Answer {
	if !p.Has(c.Resource) {
		return refuse(leasehold.NotFound, "%s is no pool with hosts: say which units the host has first", c.Resource)
	}
	for i := range c.Units {
		if u := p.units.Get(c.Resource, c.Units[i].Name); u == nil || u.Host != c.Host || u.Removed {
			return refuse(leasehold.NotFound, "host %q has no unit %q in %s: say which units it has first", c.Host,
				c.Units[i].Name, c.Resource)
		}
	}
	if failure := t.SettleAll(c.Resource); failure != nil {
		return kernel.Answer{Err: failure}
	}
	t.Take(kernel.LookCost + len(c.Units)/kernel.PerUnit)
	changed := p.takeReports(t, c)
	if changed != "" {
		t.Emit(&leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: changed})
		t.WakeQueue(c.Resource)
	}
	p.judgeIdle(t, c)
	return kernel.Answer{}
}

// takeReports notes what a report says of each unit of its host. It returns what people have to know: that a unit may
// be granted now and could not before, or the other way round; empty if there is nothing.
func (p *pools) takeReports(t kernel.Turn, c *kernel.ReportUse) (changed string) {
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
		before := p.units.Get(c.Resource, said.Name)
		u := *before
		u.Unfit = said.Unfit
		u.Use = before.Use.Next(t.Now(), heldSince(t.Namespace, before), pool.Use{Percent: said.Percent,
			Memory: said.Memory, Strangers: strangers(t.Namespace, before, said.Processes)})
		note(before, &u)
		changes = append(changes, &u)
	}
	p.units.OfHost(c.Resource, c.Host, func(before *pool.Unit) bool {
		if !reported.Contains(before.Name) && !before.Removed && before.Unfit != notReported {
			u := *before
			u.Unfit, u.Use = notReported, nil
			note(before, &u)
			changes = append(changes, &u)
		}
		return true
	})
	p.units.Set(changes...)
	return changed
}

// heldSince returns since when a unit has been held by the lease that has it; 0 if none has.
func heldSince(n kernel.Namespace, u *pool.Unit) kernel.Time {
	if claim := n.Claim(u.Lease); claim != nil {
		return claim.Since
	}
	return 0
}

// leavesWithin is how long a process of a lease that has ended may take to go before it is a stranger: what its host
// saw may be older than the end.
const leavesWithin = 30 * time.Second

// strangers returns the processes on a unit that do not belong to the lease that has it.
func strangers(n kernel.Namespace, u *pool.Unit, all []kernel.UnitProcess) (list []pool.Process) {
	lease := u.Lease
	if r := n.Resource(u.Pool); r != nil && r.Claim != "" {
		lease = r.Claim // one lease has all units
	}
	var adopted []int
	if claim := n.Claim(lease); claim != nil {
		adopted = pool.Adopted(labelsOf(claim))
	}
	for _, p := range all {
		ended := n.Ended(p.Lease)
		switch {
		case p.Lease != "" && p.Lease == lease, slices.Contains(adopted, p.PID):
		case ended != nil && time.Duration(n.Now()-ended.At) <= leavesWithin:
		default:
			list = append(list, pool.Process{PID: p.PID, User: p.User, Name: p.Name})
		}
	}
	return list
}

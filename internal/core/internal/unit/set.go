// Package unit has the pools of a namespace: which units their hosts bring, which of them somebody gets, and how they
// are used. Package pool picks units, as those who wait are shown to it; this one decides who is shown (line.go), whose
// units are lent to whom (backfill.go), and what follows from how they are used (use.go, idle.go).
//
// It asks the kernel what was learned of leases, which backfill goes by, and what is kept for reservations. It ends
// nothing itself, and grants nothing.
package unit

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// SetUnits sets which units of a pool a host has. The same units once more change nothing: no revision, no event.
func (p *pools) SetUnits(t kernel.Turn, c *kernel.SetUnits) kernel.Answer {
	if len(c.Units) == 0 && !p.Has(c.Resource) {
		return kernel.Answer{} // there is nothing to remove
	}
	failure := t.Begin()
	if failure == nil {
		failure = p.mayHaveUnits(t, c)
	}
	if failure != nil {
		return kernel.Answer{Err: failure}
	}
	t.Take(len(c.Units) / kernel.PerUnit)
	changes := p.changedUnits(c)
	if len(changes) == 0 {
		return kernel.Answer{} // an earlier try did it
	}
	p.update(t, c.Resource, changes)
	t.Emit(&leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: c.Reason})
	t.WakeQueue(c.Resource)
	return kernel.Answer{}
}

// mayHaveUnits refuses units that a host cannot have.
func (p *pools) mayHaveUnits(t kernel.Turn, c *kernel.SetUnits) *leasehold.Error {
	if failure := p.mayBecomePool(t, c.Resource); failure != nil {
		return failure
	}
	here := 0
	p.units.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if !u.Removed {
			here++
		}
		return true
	})
	if n := p.Size(c.Resource) - here + len(c.Units); n > leasehold.MaxPoolUnits {
		return refuse(leasehold.Limited, "%s would have %d units: at most %d are allowed", c.Resource, n,
			leasehold.MaxPoolUnits).Err
	}
	for _, unit := range c.Units {
		if u := p.units.Get(c.Resource, unit.Name); u != nil && u.Host != c.Host {
			return refuse(leasehold.Refused, "unit %s of %s is on host %q, and a unit is on one host: remove it there "+
				"first", unit.Name, c.Resource, u.Host).Err
		}
	}
	if n := p.namesWith(c); n > leasehold.MaxPoolNames {
		return refuse(leasehold.Limited, "the units of %s would have %d bytes of names: at most %d are allowed; give "+
			"them shorter ones", c.Resource, n, leasehold.MaxPoolNames).Err
	}
	return nil
}

// namesWith returns how many bytes the names of a pool's units have once a host has others. A unit stays as long as
// somebody has it.
func (p *pools) namesWith(c *kernel.SetUnits) int {
	n := p.units.Size(c.Resource).Names
	p.units.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if u.Lease == "" {
			n -= len(u.Name)
		}
		return true
	})
	for _, unit := range c.Units {
		if u := p.units.Get(c.Resource, unit.Name); u == nil || u.Lease == "" {
			n += len(unit.Name)
		}
	}
	return n
}

// mayBecomePool refuses units for a resource whose slots come from elsewhere: a lease on one of those slots has none of
// the units, and would not be seen by those who look for a free one.
func (p *pools) mayBecomePool(t kernel.Turn, path string) *leasehold.Error {
	if p.Has(path) {
		return nil
	}
	t.Settle(path)
	r, d := t.Resource(path), t.Definition(path)
	switch {
	case t.WaitsForTasks(path):
		return refuse(leasehold.Refused, "workers wait for tasks from %s: it has no units", path).Err
	case d.Capacity > 0 || len(d.Units) > 0:
		return refuse(leasehold.Refused, "the definition of %s gives %s its slots: take capacity and units out of it "+
			"before hosts bring theirs", d.Path, path).Err
	case t.Mirrored(path) != "":
		return refuse(leasehold.Refused, "%s shows its leases and waiters as records below %s: it has no units", path,
			t.Mirrored(path)).Err
	case r != nil && r.Sharers() > 0:
		return refuse(leasehold.Refused, "%d leases share %s: it can become a pool when they have ended", r.Sharers(),
			path).Err
	}
	return nil
}

// changedUnits returns the units of a host that are new or other than before, as they will be, and those that go.
func (p *pools) changedUnits(c *kernel.SetUnits) (changes []*pool.Unit) {
	var kept btree.Set[string]
	for _, unit := range c.Units {
		kept.Insert(unit.Name)
		u := pool.Unit{Pool: c.Resource, Host: c.Host, Name: unit.Name}
		before := p.units.Get(c.Resource, unit.Name)
		if before != nil {
			u = *before
		}
		same := before != nil && !u.Removed && u.Unfit == unit.Unfit && slices.Equal(u.Labels, unit.Labels)
		if u.Labels, u.Unfit, u.Removed = unit.Labels, unit.Unfit, false; !same {
			changes = append(changes, &u)
		}
	}
	p.units.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if !kept.Contains(u.Name) && !u.Removed {
			gone := *u
			gone.Removed = true
			changes = append(changes, &gone)
		}
		return true
	})
	return changes
}

// Drain keeps units from being granted, or lets them be granted again.
func (p *pools) Drain(t kernel.Turn, c *kernel.Drain) kernel.Answer {
	if !p.Has(c.Resource) {
		return refuse(leasehold.NotFound, "%s is no pool with hosts", c.Resource)
	}
	for _, name := range c.Units {
		if p.units.Get(c.Resource, name) == nil {
			return refuse(leasehold.NotFound, "%s has no unit %q", c.Resource, name)
		}
	}
	var changes []*pool.Unit
	p.units.Named(c.Resource, c.Units, func(u *pool.Unit) bool {
		if u.Drained != c.Why {
			drained := *u
			drained.Drained = c.Why
			changes = append(changes, &drained)
		}
		return true
	})
	t.Take(len(c.Units) / kernel.PerUnit)
	if len(changes) > 0 {
		p.units.Set(changes...)
		t.Emit(&leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: c.Why})
		t.WakeQueue(c.Resource)
	}
	return kernel.Answer{}
}

func refuse(code leasehold.Code, format string, args ...any) kernel.Answer {
	return kernel.Answer{Err: kernel.Refusal(code, format, args...)}
}

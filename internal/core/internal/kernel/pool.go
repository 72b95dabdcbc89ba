package kernel

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// A pool is a resource whose slots are units with labels, on hosts. Its units are set host by host and not by the
// definition, and package pool picks those that a lease gets.

// setUnits sets which units of a pool a host has. The same units once more change nothing: no revision, no event.
func (t *turn) setUnits(c *SetUnits) Answer {
	if len(c.Units) == 0 && (t.space(c.Namespace) == nil || !t.space(c.Namespace).pools.Has(c.Resource)) {
		return Answer{} // there is nothing to remove
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure == nil {
		failure = t.mayHaveUnits(sp, c)
	}
	if failure != nil {
		return Answer{Err: failure}
	}
	t.work.take(len(c.Units) / PerUnit)
	changes := changedUnits(sp, c)
	if len(changes) == 0 {
		return Answer{} // an earlier try did it
	}
	sp.pools.Update(changes...)
	t.emit(sp, &leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: c.Reason})
	t.wakeQueue(sp, c.Resource)
	return Answer{}
}

// mayHaveUnits refuses units that a host cannot have.
func (t *turn) mayHaveUnits(sp *space, c *SetUnits) *leasehold.Error {
	if failure := t.mayBecomePool(sp, c.Resource); failure != nil {
		return failure
	}
	here := 0
	sp.pools.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if !u.Removed {
			here++
		}
		return true
	})
	if n := sp.pools.Size(c.Resource).Units - here + len(c.Units); n > leasehold.MaxPoolUnits {
		return refuse(leasehold.Limited, "%s would have %d units: at most %d are allowed", c.Resource, n,
			leasehold.MaxPoolUnits).Err
	}
	for _, unit := range c.Units {
		if u := sp.pools.Get(c.Resource, unit.Name); u != nil && u.Host != c.Host {
			return refuse(leasehold.Refused, "unit %s of %s is on host %q, and a unit is on one host: remove it there "+
				"first", unit.Name, c.Resource, u.Host).Err
		}
	}
	if n := sp.namesWith(c); n > leasehold.MaxPoolNames {
		return refuse(leasehold.Limited, "the units of %s would have %d bytes of names: at most %d are allowed; give "+
			"them shorter ones", c.Resource, n, leasehold.MaxPoolNames).Err
	}
	return nil
}

// namesWith returns how many bytes the names of a pool's units have once a host has others. A unit stays as long as
// somebody has it.
func (sp *space) namesWith(c *SetUnits) int {
	n := sp.pools.Size(c.Resource).Names
	sp.pools.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if u.Lease == "" {
			n -= len(u.Name)
		}
		return true
	})
	for _, unit := range c.Units {
		if u := sp.pools.Get(c.Resource, unit.Name); u == nil || u.Lease == "" {
			n += len(unit.Name)
		}
	}
	return n
}

// mayAskTogether refuses a request for units of several pools if there are too many units to look at, or too many names
// for one answer. Waiters are judged again when their turn comes, because a pool may have grown since.
func (sp *space) mayAskTogether(claims []*Claim) *leasehold.Error {
	if len(claims) < 2 || poolsAmong(sp, claims) < 2 {
		return nil
	}
	names, looks := 0, 0
	for _, c := range claims {
		size := sp.pools.Size(c.Resource)
		names += min(int(c.Slots)*leasehold.MaxName, size.Names)
		looks += size.Units * (1 + c.asks().Where.Conditions())
	}
	switch {
	case names > leasehold.MaxPoolNames:
		return refuse(leasehold.Limited, "the units that are asked for at once may have %d bytes of names: at most %d "+
			"are allowed; ask for fewer pools at once", names, leasehold.MaxPoolNames).Err
	case looks > leasehold.MaxPoolsUnits:
		return refuse(leasehold.Limited, "the pools that are asked for at once have %d units, counted once and once "+
			"more for each condition: at most %d are allowed; ask for fewer pools at once", looks,
			leasehold.MaxPoolsUnits).Err
	}
	return nil
}

// poolsAmong returns of how many pools units are asked for.
func poolsAmong(sp *space, claims []*Claim) (n int) {
	for _, c := range claims {
		if sp.isPart(c.Resource, c.Slots) {
			n++
		}
	}
	return n
}

// mayBecomePool refuses units for a resource whose slots come from elsewhere: a lease on one of those slots has none of
// the units, and would not be seen by those who look for a free one.
func (t *turn) mayBecomePool(sp *space, path string) *leasehold.Error {
	if sp.pools.Has(path) {
		return nil
	}
	r, d := t.settle(sp, path), sp.definition(path)
	switch {
	case sp.waitsForTasks(path):
		return refuse(leasehold.Refused, "workers wait for tasks from %s: it has no units", path).Err
	case d.Capacity > 0 || len(d.Units) > 0:
		return refuse(leasehold.Refused, "the definition of %s gives %s its slots: take capacity and units out of it "+
			"before hosts bring theirs", d.Path, path).Err
	case sp.mirrored(path) != "":
		return refuse(leasehold.Refused, "%s shows its leases and waiters as records below %s: it has no units", path,
			sp.mirrored(path)).Err
	case r != nil && r.Sharers() > 0:
		return refuse(leasehold.Refused, "%d leases share %s: it can become a pool when they have ended", r.Sharers(),
			path).Err
	}
	return nil
}

// changedUnits returns the units of a host that are new or other than before, as they will be, and those that go.
func changedUnits(sp *space, c *SetUnits) (changes []*pool.Unit) {
	var kept btree.Set[string]
	for _, unit := range c.Units {
		kept.Insert(unit.Name)
		u := pool.Unit{Pool: c.Resource, Host: c.Host, Name: unit.Name}
		before := sp.pools.Get(c.Resource, unit.Name)
		if before != nil {
			u = *before
		}
		same := before != nil && !u.Removed && u.Unfit == unit.Unfit && slices.Equal(u.Labels, unit.Labels)
		if u.Labels, u.Unfit, u.Removed = unit.Labels, unit.Unfit, false; !same {
			changes = append(changes, &u)
		}
	}
	sp.pools.OfHost(c.Resource, c.Host, func(u *pool.Unit) bool {
		if !kept.Contains(u.Name) && !u.Removed {
			gone := *u
			gone.Removed = true
			changes = append(changes, &gone)
		}
		return true
	})
	return changes
}

// drain keeps units from being granted, or lets them be granted again.
func (t *turn) drain(c *Drain) Answer {
	sp := t.space(c.Namespace)
	if sp == nil || !sp.pools.Has(c.Resource) {
		return refuse(leasehold.NotFound, "%s is no pool with hosts", c.Resource)
	}
	for _, name := range c.Units {
		if sp.pools.Get(c.Resource, name) == nil {
			return refuse(leasehold.NotFound, "%s has no unit %q", c.Resource, name)
		}
	}
	var changes []*pool.Unit
	sp.pools.Named(c.Resource, c.Units, func(u *pool.Unit) bool {
		if u.Drained != c.Why {
			drained := *u
			drained.Drained = c.Why
			changes = append(changes, &drained)
		}
		return true
	})
	t.work.take(len(c.Units) / PerUnit)
	if len(changes) > 0 {
		sp.pools.Set(changes...)
		t.emit(sp, &leasehold.Event{Kind: leasehold.Defined, Resource: c.Resource, By: c.By, Reason: c.Why})
		t.wakeQueue(sp, c.Resource)
	}
	return Answer{}
}

// noSlotsDefined refuses a definition that gives slots to a pool, whose units are its slots.
func (sp *space) noSlotsDefined(d *leasehold.Definition) *leasehold.Error {
	if !sp.pools.Has(d.Path) || d.Capacity == 0 && len(d.Units) == 0 {
		return nil
	}
	return refuse(leasehold.Refused, "%s is a pool, and its hosts say which units it has: leave capacity and units out",
		d.Path).Err
}

// A picked is the units that a claim gets when it is granted.
type picked struct {
	id       string
	units    []*pool.Unit
	borrowed bool // they were kept for somebody else
}

// pick notes which units a claim gets. They are found out before anything is changed, since a request gets all that it
// asks for or nothing.
func (t *turn) pick(id string, units []*pool.Unit, borrowed bool) {
	t.picked = slices.DeleteFunc(t.picked, func(p picked) bool { return p.id == id })
	t.picked = append(t.picked, picked{id, units, borrowed})
}

// takeUnits gives a lease the units that were picked for it.
func (t *turn) takeUnits(sp *space, c *Claim) {
	i := slices.IndexFunc(t.picked, func(p picked) bool { return p.id == c.ID })
	units, terms := slices.Clone(t.picked[i].units), c.terms()
	t.work.take(len(units) / unitsPerWork)
	terms.Units = make([]string, len(units))
	for i, unit := range units {
		u := *unit
		u.Give(c.ID, c.Holder)
		if adopted := c.asks().Adopts; len(adopted) > 0 && u.Use != nil {
			u.Use.Strangers = nil // all of them are the holder's: else it would not get the unit
		}
		units[i], terms.Units[i] = &u, u.Name
	}
	sp.pools.Set(units...)
	c.setTerms(terms)
}

// giveUnits takes the units from a lease that ends. One that its host has no longer goes with the lease.
func (l *look) giveUnits(sp *space, c *Claim) {
	l.work.take(l.poolCost(sp, c.Resource))
	l.changeUnits(sp, c, func(u *pool.Unit) { u.TakeBack(l.now) })
}

// unitsPerWork is how many units are changed in a unit of work.
const unitsPerWork = 4

// changeUnits changes the units that a lease has of a pool.
func (l *look) changeUnits(sp *space, c *Claim, change func(*pool.Unit)) {
	var changed []*pool.Unit
	sp.eachUnit(c, func(u *pool.Unit) {
		after := *u
		change(&after)
		changed = append(changed, &after)
	})
	l.work.take(len(changed) / unitsPerWork)
	sp.pools.Update(changed...)
}

// eachUnit calls yield with each unit that a lease has of a pool.
func (sp *space) eachUnit(c *Claim, yield func(*pool.Unit)) {
	if !sp.pools.Has(c.Resource) {
		return
	}
	sp.pools.Named(c.Resource, c.terms().Units, func(u *pool.Unit) bool {
		if u.Lease == c.ID {
			yield(u)
		}
		return true
	})
}

// poolCost is what it costs to look for units in a pool, as its size and its queue tell.
func (s *State) poolCost(sp *space, path string) int {
	if !sp.pools.Has(path) {
		return 0
	}
	cost := LookCost + sp.pools.Size(path).Units/(2*PerUnit)
	if r, ok := sp.resources.Get(path); ok {
		cost += min(r.Waiting, maxLine) / PerUnit
	}
	return cost
}

// maySelect refuses to select units of a resource that has none with labels and hosts, and tasks where there are none.
func (s *State) maySelect(sp *space, c *Acquire, item Item) *leasehold.Error {
	if item.Select == nil {
		return sp.mixesTasks(c, item.Resource)
	}
	if sp.pools.Has(item.Resource) {
		return nil
	}
	return refuse(leasehold.Refused, "%s has no units on hosts to select from: say which there are with leasehold "+
		"pool create, or leave where, spread and units out", item.Resource).Err
}

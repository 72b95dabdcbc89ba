package unit

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// What leases have of pools.

// unitsPerWork is how many units are changed in a unit of work.
const unitsPerWork = 4

// namesOf returns the names of the units that a lease got.
func namesOf(c *kernel.Claim) []string {
	if c.Terms == nil {
		return nil
	}
	return c.Terms.Units
}

func labelsOf(c *kernel.Claim) leasehold.Labels {
	if c.Terms == nil {
		return nil
	}
	return c.Terms.Labels
}

// Give lets a lease have the units that were picked for it, and returns their names.
func (p *pools) Give(t kernel.Turn, c *kernel.Claim) []string {
	units := slices.Clone(t.Picked(c.ID))
	t.Take(len(units) / unitsPerWork)
	names := make([]string, len(units))
	for i, unit := range units {
		u := *unit
		u.Give(c.ID, c.Holder)
		if adopted := c.Asks().Adopts; len(adopted) > 0 && u.Use != nil {
			u.Use.Strangers = nil // all of them are the holder's: else it would not get the unit
		}
		units[i], names[i] = &u, u.Name
	}
	p.units.Set(units...)
	return names
}

// TakeBack takes the units from a lease that ends. One that its host has no longer goes with the lease.
func (p *pools) TakeBack(t kernel.Turn, c *kernel.Claim) {
	t.Take(t.PoolCost(c.Resource))
	p.changeUnits(t, c, func(u *pool.Unit) { u.TakeBack(t.Now()) })
}

// Renamed keeps the units of a lease that continues under another id or holder.
func (p *pools) Renamed(t kernel.Turn, from, to *kernel.Claim) {
	p.changeUnits(t, from, func(u *pool.Unit) {
		if from.Token != to.Token {
			u.Give(to.ID, to.Holder) // it is used on somebody else's account from now on
		}
		u.Lease, u.Holder = to.ID, to.Holder
	})
}

// changeUnits changes the units that a lease has of a pool.
func (p *pools) changeUnits(t kernel.Turn, c *kernel.Claim, change func(*pool.Unit)) {
	var changed []*pool.Unit
	p.eachUnit(c, func(u *pool.Unit) {
		after := *u
		change(&after)
		changed = append(changed, &after)
	})
	t.Take(len(changed) / unitsPerWork)
	p.update(t, c.Resource, changed)
}

// eachUnit calls yield with each unit that a lease has of a pool.
func (p *pools) eachUnit(c *kernel.Claim, yield func(*pool.Unit)) {
	p.units.Named(c.Resource, namesOf(c), func(u *pool.Unit) bool {
		if u.Lease == c.ID {
			yield(u)
		}
		return true
	})
}

// Share returns what a lease had of a pool, and on which hosts, but for those beyond a few.
func (p *pools) Share(c *kernel.Claim) leasehold.Share {
	share := leasehold.Share{Labels: labelsOf(c), Units: int(c.Slots)}
	if c.Slots == 0 { // an exclusive lease has all of them
		share.Units = p.Size(c.Resource)
	}
	p.eachUnit(c, func(u *pool.Unit) {
		at, known := slices.BinarySearchFunc(share.Hosts, u.Host, func(h leasehold.HostUnits, host string) int {
			return cmp.Compare(h.Host, host)
		})
		switch {
		case known:
			share.Hosts[at].Units++
		case len(share.Hosts) < leasehold.MaxShareHosts:
			share.Hosts = slices.Insert(share.Hosts, at, leasehold.HostUnits{Host: u.Host, Units: 1})
		}
	})
	return share
}

// Used returns how long the units of a lease were used and were not, as far as that was reported.
func (p *pools) Used(c *kernel.Claim) (busy, idle time.Duration) {
	p.eachUnit(c, func(u *pool.Unit) {
		if u.Use != nil {
			busy, idle = busy+u.Use.Busy, idle+u.Use.Unused
		}
	})
	return busy, idle
}

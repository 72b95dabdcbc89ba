package unit

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// CheckLease checks that a lease on units of a pool has as many as it was granted, that they know of it, and that they
// are on one host if it asked for that.
func (p *pools) CheckLease(n kernel.Namespace, c *kernel.Claim, that func(ok bool, format string, args ...any)) {
	names := namesOf(c)
	that(len(names) == int(c.Slots), "%s/%s asked for %d units of %q, and has %d", n.Name(), c.ID, c.Slots, c.Resource,
		len(names))
	var hosts btree.Set[string]
	for _, name := range names {
		u := p.units.Get(c.Resource, name)
		that(u != nil && u.Lease == c.ID, "%s/%s has unit %q, which does not know", n.Name(), c.ID, name)
		if u != nil {
			hosts.Insert(u.Host)
		}
	}
	var sel *leasehold.Select
	if c.Terms != nil {
		sel = c.Terms.Select
	}
	spread := sel != nil && (sel.Spread || len(sel.Units) > 0)
	that(spread || hosts.Len() <= 1, "%s/%s has units on %d hosts, and asked for one", n.Name(), c.ID, hosts.Len())
}

// Check checks that each unit that somebody has is one of its lease's, and that hosts and pools count right.
func (p *pools) Check(n kernel.Namespace, counted int, that func(ok bool, format string, args ...any)) {
	p.quiet.Scan(func(path string, _ kernel.Time) bool {
		that(p.Has(path), "%s/%s is no pool, and has a queue that is quiet", n.Name(), path)
		return true
	})
	all := 0
	p.units.Pools("", func(path string, size pool.Size) bool {
		var found pool.Size
		p.units.Hosts(path, func(h *pool.Host) bool {
			here := pool.Host{Pool: path, Name: h.Name}
			p.units.OfHost(path, h.Name, func(u *pool.Unit) bool {
				p.checkUnit(n, u, that)
				found.Names += len(u.Name)
				if u.Removed {
					found.Removed++
					return true
				}
				found.Units, here.Units = found.Units+1, here.Units+1
				if u.Free() {
					here.Free++
				}
				return true
			})
			that(h.Units == here.Units && h.Free == here.Free, "%s/%s: host %q counts %d units and %d free, and has "+
				"%d and %d", n.Name(), path, h.Name, h.Units, h.Free, here.Units, here.Free)
			return true
		})
		that(size.Names <= leasehold.MaxPoolNames, "%s/%s has units with %d bytes of names", n.Name(), path,
			size.Names)
		that(size == found, "%s/%s counts %+v units, and has %+v", n.Name(), path, size, found)
		all += size.Units + size.Removed
		return true
	})
	that(all == p.units.Len() && all == counted, "%s: pools have %d units, %d are named, %d are counted", n.Name(), all,
		p.units.Len(), counted)
}

// checkUnit checks one unit: a lease that has it knows that, it is gone if it was removed and nobody has it, and it is
// found by its name as well as by its host.
func (p *pools) checkUnit(n kernel.Namespace, u *pool.Unit, that func(ok bool, format string, args ...any)) {
	claim := n.Claim(u.Lease)
	that(u.Lease == "" || claim != nil && !claim.Waiting() && claim.Resource == u.Pool &&
		slices.Contains(namesOf(claim), u.Name), "%s/%s: unit %q is of %q, which does not know", n.Name(), u.Pool,
		u.Name, u.Lease)
	that(!u.Removed || u.Lease != "", "%s/%s: unit %q was removed, and is there", n.Name(), u.Pool, u.Name)
	that(p.units.Get(u.Pool, u.Name) == u, "%s/%s: unit %q is not found by its name", n.Name(), u.Pool, u.Name)
}

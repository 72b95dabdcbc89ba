package kernel

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// poolLease checks that a lease on units of a pool has as many as it was granted, that they know of it, and that they
// are on one host if it asked for that. It reports whether the lease is one on units of a pool.
func (c *checker) poolLease(sp *space, claim *Claim) bool {
	if !sp.isPart(claim.Resource, claim.Slots) {
		return false
	}
	names := claim.terms().Units
	c.that(len(names) == int(claim.Slots), "%s/%s asked for %d units of %q, and has %d", sp.name, claim.ID, claim.Slots,
		claim.Resource, len(names))
	var hosts btree.Set[string]
	for _, name := range names {
		u := sp.pools.Get(claim.Resource, name)
		c.that(u != nil && u.Lease == claim.ID, "%s/%s has unit %q, which does not know", sp.name, claim.ID, name)
		if u != nil {
			hosts.Insert(u.Host)
		}
	}
	sel := claim.terms().Select
	spread := sel != nil && (sel.Spread || len(sel.Units) > 0)
	c.that(spread || hosts.Len() <= 1, "%s/%s has units on %d hosts, and asked for one", sp.name, claim.ID, hosts.Len())
	return true
}

// pools checks that each unit that somebody has is one of its lease's, and that hosts and pools count right.
func (c *checker) pools(sp *space) {
	sp.quiet.Scan(func(path string, _ Time) bool {
		c.that(sp.pools.Has(path), "%s/%s is no pool, and has a queue that is calm", sp.name, path)
		return true
	})
	counted := 0
	sp.pools.Pools("", func(path string, size pool.Size) bool {
		var found pool.Size
		sp.pools.Hosts(path, func(h *pool.Host) bool {
			here := pool.Host{Pool: path, Name: h.Name}
			sp.pools.OfHost(path, h.Name, func(u *pool.Unit) bool {
				c.unit(sp, u)
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
			c.that(h.Units == here.Units && h.Free == here.Free, "%s/%s: host %q counts %d units and %d free, and has "+
				"%d and %d", sp.name, path, h.Name, h.Units, h.Free, here.Units, here.Free)
			return true
		})
		c.that(size.Names <= leasehold.MaxPoolNames, "%s/%s has units with %d bytes of names", sp.name, path,
			size.Names)
		c.that(size == found, "%s/%s counts %+v units, and has %+v", sp.name, path, size, found)
		counted += size.Units + size.Removed
		return true
	})
	c.that(counted == sp.pools.Len(), "%s: pools have %d units, %d are named", sp.name, counted, sp.pools.Len())
}

// unit checks one unit: a lease that has it knows that, it is gone if it was removed and nobody has it, and it is found
// by its name as well as by its host.
func (c *checker) unit(sp *space, u *pool.Unit) {
	claim, ok := sp.claims.Get(u.Lease)
	c.that(u.Lease == "" || ok && !claim.Waiting() && claim.Resource == u.Pool &&
		slices.Contains(claim.terms().Units, u.Name), "%s/%s: unit %q is of %q, which does not know", sp.name, u.Pool,
		u.Name, u.Lease)
	c.that(!u.Removed || u.Lease != "", "%s/%s: unit %q was removed, and is there", sp.name, u.Pool, u.Name)
	c.that(sp.pools.Get(u.Pool, u.Name) == u, "%s/%s: unit %q is not found by its name", sp.name, u.Pool, u.Name)
}

// freeOfPool reports whether any waiter of a pool should have been granted.
func (c *checker) freeOfPool(s *look, sp *space, r *Resource) bool {
	if r.Claim != "" || s.unresumed(sp, r.Path) || sp.handsOver(r.Path) || len(r.more().Rests) > 0 {
		return false
	}
	for w := nextWaiting(sp, r.Path, beforeAll(r.Path)); w != nil; w = nextWaiting(sp, r.Path, w) {
		if w.Early() {
			return false
		}
		if w.Slots == 0 {
			return first(sp, r.Path) == w && s.fits(sp, r, 0, 0) && c.freeFor(s, sp, w)
		}
		if c.freeFor(s, sp, w) {
			return true
		}
	}
	return false
}

// freeUnits reports whether a waiter could have units of a pool.
func (c *checker) freeUnits(s *look, sp *space, w *Claim, pools int) bool {
	r, ok := sp.resources.Get(w.Resource)
	if !ok || r.Claim != "" || s.unresumed(sp, r.Path) || sp.handsOver(r.Path) || len(r.more().Rests) > 0 {
		return false
	}
	if _, gone := s.mustLeave(sp, w); gone || w.Early() {
		return false
	}
	l := s.lineBefore(sp, r.Path, pools, false, func(c *Claim) bool { return c != w })
	return l.judge(w).grant // that time alone makes somebody a borrower is not looked for
}

// freeFor reports whether a waiter, and those with it, should have been granted.
func (c *checker) freeFor(s *look, sp *space, head *Claim) bool {
	with := head.Wait.With
	if with == nil {
		with = []string{head.ID}
	}
	pools := poolsAmong(sp, s.together(sp, head))
	for _, id := range with {
		w, ok := sp.claims.Get(id)
		if ok && sp.isPart(w.Resource, w.Slots) {
			if !c.freeUnits(s, sp, w, pools) {
				return false
			}
			continue
		}
		if !ok || w.Early() || first(sp, w.Resource) != w || s.unresumed(sp, w.Resource) || sp.handsOver(w.Resource) {
			return false
		}
		if c.overlapped(s, sp, w) {
			return false
		}
		at, ok := sp.resources.Get(w.Resource)
		if !ok || len(at.more().Rests) > 0 || !s.fits(sp, at, w.Slots, leasehold.MaxCapacity) {
			return false
		}
	}
	return true
}

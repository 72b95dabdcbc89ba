package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A Namespace is what a subject may read of one: at the command at hand, or for somebody who reads.
type Namespace struct {
	s  *State
	sp *space
}

func (n Namespace) Name() string { return n.sp.name }

// Now is the stamp of the command at hand.
func (n Namespace) Now() Time { return n.s.now }

// Resource returns what is known of a resource; nil if nothing is.
func (n Namespace) Resource(path string) *Resource {
	r, _ := n.sp.resources.Get(path)
	return r
}

// ResourcesFrom calls yield with the resources from a path on, in the order of their paths, until it returns false.
func (n Namespace) ResourcesFrom(path string, yield func(*Resource) bool) {
	n.sp.resources.Ascend(path, func(_ string, r *Resource) bool { return yield(r) })
}

// Junior returns one of those who hold a resource.
func (n Namespace) Junior(r *Resource) *Claim { return n.sp.junior(r) }

// Unresumed reports whether nothing is granted of a resource yet, since the state was restored from a backup.
func (n Namespace) Unresumed(path string) bool { return n.s.unresumed(n.sp, path) }

// Waiters calls yield with those who wait for a resource, in their order, until it returns false.
func (n Namespace) Waiters(path string, yield func(*Claim) bool) {
	n.sp.queue.Ascend(beforeAll(path), func(c *Claim) bool { return c.Resource == path && yield(c) })
}

// WaitersBefore counts those who wait for a resource and come before a waiter for another one.
func (n Namespace) WaitersBefore(path string, c *Claim) int {
	return rank(n.sp, &Claim{Resource: path, Wait: c.Wait}) - rank(n.sp, beforeAll(path))
}

// Waits reports whether a waiter is still as it was seen.
func (n Namespace) Waits(c *Claim) bool {
	now, _ := n.sp.claims.Get(c.ID)
	return now == c
}

// MustLeave reports whether a waiter may no longer be granted.
func (n Namespace) MustLeave(c *Claim) bool {
	_, leaves := n.s.mustLeave(n.sp, c)
	return leaves
}

// Kept reports whether some of a resource is kept for a reservation.
func (n Namespace) Kept(path string) bool { return n.s.keeper(n.sp, path) != nil }

// Claim returns the lease or waiter of an id; nil if there is none.
func (n Namespace) Claim(id string) *Claim {
	c, _ := n.sp.claims.Get(id)
	return c
}

// Ended returns what is remembered of a lease or waiter that ended; nil if nothing is.
func (n Namespace) Ended(id string) *EndedClaim {
	ended, _ := n.sp.claims.Ended(id)
	return ended
}

// HasRecord reports whether there is a record at a path.
func (n Namespace) HasRecord(path string) bool { return n.sp.records.Get(path) != nil }

// Arrivals is the last number in the order of arrival.
func (n Namespace) Arrivals() uint64 { return n.sp.arrivals }

// Session returns the session of an id; nil if there is none.
func (n Namespace) Session(id string) *Session {
	session, _ := n.sp.sessions.Get(id)
	return session
}

// Definition is what is defined for a resource.
func (n Namespace) Definition(path string) leasehold.Definition { return n.sp.definition(path) }

// Date is what the calendar says.
func (n Namespace) Date() reservation.Moment { return n.s.date }

// Holders calls yield with those who hold a resource, the oldest first, until it returns false.
func (n Namespace) Holders(r *Resource, yield func(*Claim) bool) { n.sp.holders(r, yield) }

// Capacity is how many slots a resource has; 0 if nobody said. What those who share it agreed on counts if r is what is
// known of it, and not if r is nil.
func (n Namespace) Capacity(path string, r *Resource) int {
	return n.sp.capacity(path, r, n.sp.definition(path))
}

// TooManySlots refuses to take more than there are.
func (n Namespace) TooManySlots(item Item, capacity int) *leasehold.Error {
	return n.s.tooManySlots(item, capacity)
}

// MaySelect refuses to select units of a resource that has none to select from.
func (n Namespace) MaySelect(item Item) *leasehold.Error {
	return n.s.maySelect(n.sp, &Acquire{}, item)
}

// Mirrored returns the prefix of the records that show the waiters of a resource in their order; empty if none do.
func (n Namespace) Mirrored(path string) string { return n.sp.mirrored(path) }

// InUnits reports whether slots of a resource are units of a pool.
func (n Namespace) InUnits(path string, slots uint32) bool { return n.sp.isPart(path, slots) }

// PoolCost is the work of a look for units in a pool; 0 if a resource is none.
func (n Namespace) PoolCost(path string) int { return n.s.poolCost(n.sp, path) }

// Unit returns a unit of a pool; nil if there is none of that name.
func (n Namespace) Unit(path, name string) *pool.Unit { return n.sp.pools.Unit(path, name) }

// PlanUnits chooses units of a pool by what they are worth; nil if there are too few.
func (n Namespace) PlanUnits(path string, ask *pool.Ask, worth func(*pool.Unit) int) []*pool.Unit {
	return n.sp.pools.Plan(path, ask, worth)
}

// MostUnits is how many units a pool has for what is asked of it, and NeverEnough says why these will never do.
func (n Namespace) MostUnits(path string, ask *pool.Ask) int { return n.sp.pools.Most(path, ask) }

func (n Namespace) NeverEnough(path string, ask *pool.Ask, most int) string {
	return n.sp.pools.NeverEnough(path, ask, most)
}

// Claims calls yield with all leases and waiters, until it returns false.
func (n Namespace) Claims(yield func(*Claim) bool) {
	n.sp.claims.Scan(func(_ string, c *Claim) bool { return yield(c) })
}

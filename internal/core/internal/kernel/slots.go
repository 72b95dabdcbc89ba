package kernel

import (
	"slices"

	"github.com/leasehold/leasehold"
)

// A resource with a capacity is shared by slots; an exclusive lease, with 0 slots, takes all of
// them. Leases on slots are found in the order of their tokens, because the smallest token that
// is alive is the floor, by which a guard turns late holders away.

// Shares is how the slots of a resource are taken.
type Shares struct {
	Capacity int // what holders and waiters agreed on; a definition goes before it
	Units    []Unit

	// What follows can be told from the leases.
	used    int
	holders int
	soonest Time // no lease on it ends before; 0: none ends by time
}

// A sharer is a lease on some slots of a resource, in the order of the tokens.
type sharer struct {
	path  string
	token leasehold.Token
	id    string
}

// holders calls yield with the leases on a resource in the order of their tokens, until it
// returns false.
func (sp *space) holders(r *Resource, yield func(*Claim) bool) {
	if r.Claim != "" {
		c, _ := sp.claims.Get(r.Claim)
		yield(c)
		return
	}
	if r.Sharers() == 0 {
		return
	}
	sp.sharers.Ascend(sharer{path: r.Path}, func(at sharer) bool {
		if at.path != r.Path {
			return false
		}
		c, _ := sp.claims.Get(at.id)
		return yield(c)
	})
}

// senior returns the lease on a resource with the smallest token; nil if nobody has it.
func (sp *space) senior(r *Resource) (senior *Claim) {
	sp.holders(r, func(c *Claim) bool {
		senior = c
		return false
	})
	return senior
}

// junior returns the lease on a resource with the largest token; nil if nobody has it.
func (sp *space) junior(r *Resource) (junior *Claim) {
	if r.Sharers() == 0 {
		return sp.senior(r)
	}
	sp.sharers.Descend(sharer{path: r.Path, token: leasehold.MaxToken}, func(at sharer) bool {
		junior, _ = sp.claims.Get(at.id)
		return false
	})
	return junior
}

// capacity returns how many slots a resource has; 0 if nobody said.
func (sp *space) capacity(path string, r *Resource, d leasehold.Definition) int {
	switch {
	case sp.isPool(path):
		return max(1, sp.pools.Size(path))
	case len(d.Units) > 0:
		return len(d.Units)
	case d.Capacity > 0:
		return d.Capacity
	case r != nil && r.More != nil && r.More.Shares != nil:
		return r.More.Shares.Capacity
	}
	return 0
}

// fits reports whether a number of slots of a resource are free, waiters aside. said is the
// capacity that counts if nobody has set one: slots may rest although all who shared them, and
// agreed on their number, are gone.
func (l *look) fits(sp *space, r *Resource, slots uint32, said int) bool {
	if r.Claim != "" {
		return false
	}
	resting, all := r.Rests(l.now)
	kept, keptAll := l.reservedSlots(sp, r.Path)
	resting += kept
	switch {
	case all || keptAll:
		return false
	// An exclusive lease waits for every slot, those at rest included.
	case slots == 0:
		return resting == 0 && r.Sharers() == 0
	case r.More == nil && kept == 0:
		return true
	}
	if known := sp.capacity(r.Path, r, sp.definition(r.Path)); known != 0 {
		said = known
	}
	return r.more().shares().used+resting+int(slots) <= said
}

// settleCapacity records the number of slots that the first who shares a resource names.
func (t *turn) settleCapacity(sp *space, item Item) {
	if item.Slots == 0 {
		return
	}
	said := Resource{Path: item.Resource}
	if r, ok := sp.resources.Get(item.Resource); ok {
		said = *r
	}
	more := said.more()
	shares := more.shares()
	if shares.Capacity != 0 {
		return
	}
	shares.Capacity = item.KnownCapacity()
	if known := sp.capacity(item.Resource, nil, sp.definition(item.Resource)); known != 0 {
		shares.Capacity = known
	}
	more.Shares = &shares
	said.setMore(more)
	// Not by setResource: nobody has or wants it yet, and it would be forgotten again.
	sp.resources.Set(said.Path, &said)
}

// occupy records on a resource that a lease has it, and gives the lease its units.
func (t *turn) occupy(sp *space, r *Resource, c *Claim) {
	more := r.more()
	rested := len(more.Rests)
	more.Rests = more.resting(t.now)
	d := sp.definition(r.Path)
	if c.Slots == 0 {
		r.Claim = c.ID
	}
	if sp.isPool(r.Path) {
		d.Units = nil // the hosts say which there are
	}
	if c.Slots == 0 && len(d.Units) == 0 && more.Shares == nil {
		if rested != len(more.Rests) {
			r.setMore(more)
		}
		return
	}
	shares := more.shares()
	if c.Slots != 0 {
		t.join(sp, &shares, c)
	}
	if len(d.Units) > 0 {
		shares.Units = named(shares.Units, d.Units)
		t.assign(&shares, more.Rests, c)
	}
	if sp.isPart(r.Path, c.Slots) {
		t.takeUnits(sp, c)
	}
	more.Shares = &shares
	r.setMore(more)
}

// join counts a lease on some slots.
func (t *turn) join(sp *space, shares *Shares, c *Claim) {
	sp.sharers.Set(sharer{c.Resource, c.Token, c.ID})
	shares.used += int(c.Slots)
	shares.holders++
	shares.hasten(t.deadlineOf(sp, c))
}

// hasten records that a lease may end at a moment. It only ever moves soonest forward: a
// renewal leaves it as it is, which costs one needless look and never misses an end.
func (shares *Shares) hasten(at Time) {
	if at != 0 && (shares.soonest == 0 || at < shares.soonest) {
		shares.soonest = at
	}
}

// vacate takes a lease that ends off its resource.
func (t *turn) vacate(sp *space, r *Resource, more *More, c *Claim) {
	if c.Slots == 0 {
		r.Claim = ""
	}
	t.giveUnits(sp, c)
	if more.Shares == nil {
		return
	}
	shares := *more.Shares
	if c.Slots != 0 {
		sp.sharers.Delete(sharer{c.Resource, c.Token, c.ID})
		shares.used -= int(c.Slots)
		shares.holders--
		if shares.holders == 0 {
			shares.soonest = 0
		}
	}
	if len(shares.Units) > 0 {
		shares.Units = slices.Clone(shares.Units)
		for i := range shares.Units {
			if shares.Units[i].lease == c.ID {
				shares.Units[i].lease, shares.Units[i].Freed = "", t.now
			}
		}
		shares.Units = named(shares.Units, sp.definition(r.Path).Units)
	}
	more.Shares = &shares
}

func (m More) shares() Shares {
	if m.Shares == nil {
		return Shares{}
	}
	return *m.Shares
}

// Used is how many slots are held.
func (r *Resource) Used() int { return r.more().shares().used }

func (r *Resource) Sharers() int {
	if r.More == nil || r.More.Shares == nil {
		return 0
	}
	return r.More.Shares.holders
}

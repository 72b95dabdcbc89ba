package pool

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A Unit is one slot of a pool. It is never changed in place.
type Unit struct {
	Pool, Host, Name string
	Labels           leasehold.Labels

	Unfit   string // why its host says that it is not to be granted; empty: it may be
	Drained string // why an operator does
	Removed bool   // its host has it no longer, and a lease still does

	Holder string        // who has it, or had it last
	Freed  timeline.Time // 0 if nobody had it yet
	Lease  string        // the id of the lease that has it; it follows from the leases

	Use *Use // what its host says of how it is used; nil: nothing
}

// Fit reports whether a unit may be granted once nobody has it.
func (u *Unit) Fit() bool { return u.sound() && !u.Taken() }

// sound is Fit for who does not mind that somebody uses the unit without a lease.
func (u *Unit) sound() bool { return !u.Removed && u.Unfit == "" && u.Drained == "" }

// Free reports whether a unit may be granted now, if it does not rest.
func (u *Unit) Free() bool { return u.Lease == "" && u.Fit() }

// A Host is what one host has of a pool. It is never changed in place.
type Host struct {
	Pool, Name string
	Units      int // without those that were removed
	Free       int
	list       []*Unit // by name, those that were removed and that a lease still has among them
}

// A Table is the units of all pools of a namespace. Values in it are never changed in place, so that Copy costs
// nothing however many there are.
type Table struct {
	names *btree.BTreeG[*Unit] // by pool and name
	hosts *btree.BTreeG[*Host] // by pool and name
	sizes btree.Map[string, Size]
}

// A Size is how many units a pool has.
type Size struct {
	Units   int // without those that were removed
	Removed int // that leases still have
}

var noLocks = btree.Options{NoLocks: true}

// NewTable returns an empty table.
func NewTable() Table {
	return Table{
		names: btree.NewBTreeGOptions(func(a, b *Unit) bool {
			return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name)) < 0
		}, noLocks),
		hosts: btree.NewBTreeGOptions(func(a, b *Host) bool {
			return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name)) < 0
		}, noLocks),
	}
}

// Copy returns a table that stays as it is while the original goes on.
func (t *Table) Copy() Table {
	return Table{t.names.Copy(), t.hosts.Copy(), *t.sizes.Copy()}
}

// Len returns how many units there are in all pools.
func (t *Table) Len() int { return t.names.Len() }

// Has reports whether a path names a pool.
func (t *Table) Has(pool string) bool {
	if t.names.Len() == 0 {
		return false
	}
	_, ok := t.sizes.Get(pool)
	return ok
}

// Size returns how many units a pool has.
func (t *Table) Size(pool string) Size {
	size, _ := t.sizes.Get(pool)
	return size
}

// Get returns a unit by its name; nil if there is none.
func (t *Table) Get(pool, name string) *Unit {
	u, _ := t.names.Get(&Unit{Pool: pool, Name: name})
	return u
}

// Set puts a unit in the place of the one that has its name.
func (t *Table) Set(u *Unit) {
	before := t.Get(u.Pool, u.Name)
	t.names.Set(u)
	if before != nil && before.Host == u.Host {
		t.move(u.Host, before, u)
		return
	}
	if before != nil {
		t.move(before.Host, before, nil)
	}
	t.move(u.Host, nil, u)
}

// Delete takes the unit with a name away.
func (t *Table) Delete(pool, name string) {
	if u := t.Get(pool, name); u != nil {
		t.names.Delete(u)
		t.move(u.Host, u, nil)
	}
}

// move puts one unit in the place of another on a host. Either of the two may be nil.
func (t *Table) move(host string, before, after *Unit) {
	one := cmp.Or(after, before)
	h := Host{Pool: one.Pool, Name: host}
	if known, ok := t.hosts.Get(&h); ok {
		h = *known
	}
	size := t.Size(one.Pool)
	h.count(before, &size, -1)
	h.count(after, &size, 1)
	at, _ := slices.BinarySearchFunc(h.list, one, func(u, v *Unit) int { return cmp.Compare(u.Name, v.Name) })
	h.list = slices.Clone(h.list)
	switch {
	case before == nil:
		h.list = slices.Insert(h.list, at, after)
	case after == nil:
		h.list = slices.Delete(h.list, at, at+1)
	default:
		h.list[at] = after
	}
	if len(h.list) == 0 {
		t.hosts.Delete(&h)
	} else {
		t.hosts.Set(&h)
	}
	if size == (Size{}) {
		t.sizes.Delete(one.Pool)
	} else {
		t.sizes.Set(one.Pool, size)
	}
}

// count counts a unit that comes or goes.
func (h *Host) count(u *Unit, size *Size, n int) {
	if u == nil {
		return
	}
	if u.Removed {
		size.Removed += n
	} else {
		h.Units, size.Units = h.Units+n, size.Units+n
	}
	if u.Free() {
		h.Free += n
	}
}

// Scan calls yield with all units by pool, host and name, until it returns false.
func (t *Table) Scan(yield func(*Unit) bool) {
	t.hosts.Scan(func(h *Host) bool { return all(h.list, yield) })
}

func all(list []*Unit, yield func(*Unit) bool) bool {
	for _, u := range list {
		if !yield(u) {
			return false
		}
	}
	return true
}

// Units calls yield with the units of a pool by host and name, after one of them, until it returns false.
func (t *Table) Units(pool string, after *Unit, yield func(*Unit) bool) {
	from := &Host{Pool: pool}
	if after != nil {
		from.Name = after.Host
	}
	t.hosts.Ascend(from, func(h *Host) bool {
		list := h.list
		if after != nil && h.Name == after.Host {
			list = slices.DeleteFunc(slices.Clone(list), func(u *Unit) bool { return u.Name <= after.Name })
		}
		return h.Pool == pool && all(list, yield)
	})
}

// OfHost calls yield with the units that one host has of a pool.
func (t *Table) OfHost(pool, host string, yield func(*Unit) bool) {
	if h, ok := t.hosts.Get(&Host{Pool: pool, Name: host}); ok {
		all(h.list, yield)
	}
}

// Hosts calls yield with the hosts of a pool by name, until it returns false.
func (t *Table) Hosts(pool string, yield func(*Host) bool) {
	t.hosts.Ascend(&Host{Pool: pool}, func(h *Host) bool { return h.Pool == pool && yield(h) })
}

// Pools calls yield with the paths of pools, in order and beginning with from, until it returns false.
func (t *Table) Pools(from string, yield func(pool string, size Size) bool) {
	t.sizes.Ascend(from, yield)
}

package pool

import (
	"cmp"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
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
	homes *btree.Tree[home]  // by pool and name
	hosts *btree.Tree[*Host] // by pool and name
	sizes btree.Map[string, Size]
}

// A home says on which host a unit is. It stays there for as long as it is in the pool.
type home struct{ pool, name, host string }

// A Size is how many units a pool has.
type Size struct {
	Units   int // without those that were removed
	Removed int // that leases still have
	Names   int // bytes of the names of all of these
}

// NewTable returns an empty table.
func NewTable() Table {
	return Table{
		homes: btree.New(func(a, b home) bool {
			return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.name, b.name)) < 0
		}),
		hosts: btree.New(func(a, b *Host) bool {
			return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name)) < 0
		}),
	}
}

// Copy returns a table that stays as it is while the original goes on.
func (t *Table) Copy() Table {
	return Table{t.homes.Copy(), t.hosts.Copy(), *t.sizes.Copy()}
}

// Len returns how many units there are in all pools.
func (t *Table) Len() int { return t.homes.Len() }

// Has reports whether a path names a pool.
func (t *Table) Has(pool string) bool {
	if t.homes.Len() == 0 {
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
func (t *Table) Get(pool, name string) (found *Unit) {
	t.Named(pool, []string{name}, func(u *Unit) bool {
		found = u
		return true
	})
	return found
}

// Named calls yield with the units that have some names, in the order of these, until it returns false. Names that are
// not there are left out. Names of one host that follow each other cost little.
func (t *Table) Named(pool string, names []string, yield func(*Unit) bool) {
	var list []*Unit
	at := 0
	for _, name := range names {
		if at == len(list) || list[at].Name != name {
			here := false
			if at, here = place(list, name); !here {
				list = t.neighbours(pool, name)
				at, here = place(list, name)
			}
			if !here {
				continue
			}
		}
		if at++; !yield(list[at-1]) {
			return
		}
	}
}

// neighbours returns the units of the host that has the one with a name.
func (t *Table) neighbours(pool, name string) []*Unit {
	if its, ok := t.homes.Get(home{pool: pool, name: name}); ok {
		h, _ := t.hosts.Get(&Host{Pool: pool, Name: its.host})
		return h.list
	}
	return nil
}

// place finds a name among the units of a host.
func place(list []*Unit, name string) (at int, here bool) {
	return slices.BinarySearchFunc(list, name, func(u *Unit, name string) int { return cmp.Compare(u.Name, name) })
}

// Set puts units in the place of those that have their names. Many of one host that follow each other cost little more
// than one.
func (t *Table) Set(units ...*Unit) { t.set(units, false) }

// Update is Set, and takes those away that were removed and that no lease has any longer.
func (t *Table) Update(units ...*Unit) { t.set(units, true) }

func (t *Table) set(units []*Unit, clear bool) {
	for len(units) > 0 {
		first, n := units[0], 1
		for n < len(units) && units[n].Host == first.Host && units[n].Pool == first.Pool {
			n++
		}
		t.setOnHost(first.Pool, first.Host, units[:n], clear)
		units = units[n:]
	}
}

// setOnHost is set for the units of one host, whose list is copied once.
func (t *Table) setOnHost(pool, host string, units []*Unit, clear bool) {
	h := Host{Pool: pool, Name: host}
	if known, ok := t.hosts.Get(&h); ok {
		h = *known
	}
	size := t.Size(pool)
	h.list = slices.Clone(h.list)
	for _, u := range units {
		at, here := place(h.list, u.Name)
		if here {
			h.count(h.list[at], &size, -1)
		}
		switch gone := clear && u.Removed && u.Lease == ""; {
		case gone && here:
			h.list = slices.Delete(h.list, at, at+1)
			t.homes.Delete(home{pool: pool, name: u.Name})
		case gone:
		case here:
			h.list[at] = u
			h.count(u, &size, 1)
		default:
			h.list = slices.Insert(h.list, at, u)
			t.homes.Set(home{pool, u.Name, host})
			h.count(u, &size, 1)
		}
	}
	if len(h.list) == 0 {
		t.hosts.Delete(&h)
	} else {
		t.hosts.Set(&h)
	}
	if size == (Size{}) {
		t.sizes.Delete(pool)
	} else {
		t.sizes.Set(pool, size)
	}
}

// count counts a unit that comes or goes.
func (h *Host) count(u *Unit, size *Size, n int) {
	size.Names += n * len(u.Name)
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

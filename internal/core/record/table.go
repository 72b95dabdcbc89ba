package record

import (
	"fmt"
	"sort"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
)

// A Table is the records of one namespace. Values in it are never changed in place, so that Copy
// costs nothing however much there is. The nil table is empty.
type Table struct {
	records  btree.Map[string, *leasehold.Record]
	bound    *btree.Tree[binding]            // those that a session would take with it
	shelves  btree.Map[string, *Shelf]       // of the records that keep former versions
	versions *btree.Tree[*leasehold.Version] // by path, then revision
	bytes    int                             // of records and versions, large values in full
	linked   int                             // records that stand for a lease
}

// A binding says that the record of a path ends with a session.
type binding struct{ session, path string }

// NewTable returns an empty table.
func NewTable() Table {
	return Table{
		bound: btree.New(func(a, b binding) bool {
			if a.session != b.session {
				return a.session < b.session
			}
			return a.path < b.path
		}),
		versions: btree.New(func(a, b *leasehold.Version) bool {
			if a.Path != b.Path {
				return a.Path < b.Path
			}
			return a.Revision < b.Revision
		}),
	}
}

// Copy returns a table that stays as it is while the original goes on.
func (t *Table) Copy() Table {
	return Table{
		records: *t.records.Copy(), bound: t.bound.Copy(),
		shelves: *t.shelves.Copy(), versions: t.versions.Copy(), bytes: t.bytes,
		linked: t.linked,
	}
}

// Len returns how many records there are.
func (t *Table) Len() int { return t.records.Len() }

// Bytes returns the bytes of all paths and values, large ones in full, and those of former versions.
func (t *Table) Bytes() int { return t.bytes }

// BytesOf is Bytes for one path.
func (t *Table) BytesOf(path string) (n int) {
	if r, ok := t.Get(path); ok {
		n = size(r.Path, r.Value, r.Large)
	}
	if shelf, ok := t.Shelf(path); ok {
		n += shelf.bytes
	}
	return n
}

// Empty reports whether there are neither records nor former versions.
func (t *Table) Empty() bool { return t.records.Len() == 0 && t.shelves.Len() == 0 }

// Get returns the record of a path.
func (t *Table) Get(path string) (*leasehold.Record, bool) {
	if t == nil {
		return nil, false
	}
	return t.records.Get(path)
}

// Linked returns how many records stand for a lease.
func (t *Table) Linked() int { return t.linked }

// Binds reports whether a record ends with its session. The record may be nil.
func (t *Table) Binds(r *leasehold.Record) bool {
	if r == nil || r.Session == "" {
		return false
	}
	_, bound := t.bound.Get(binding{r.Session, r.Path})
	return bound
}

// Ascend calls see with the records of [from, to), in order, until it returns false. An empty to
// is the end.
func (t *Table) Ascend(from, to string, see func(*leasehold.Record) bool) {
	t.records.Ascend(from, func(path string, r *leasehold.Record) bool {
		return (to == "" || path < to) && see(r)
	})
}

// FirstBound returns the first path that is bound to a session; empty if there is none.
func (t *Table) FirstBound(session string) (first string) {
	t.AscendBound(session, "", "", func(path string) bool {
		first = path
		return false
	})
	return first
}

// Bound returns all paths that are bound to a session.
func (t *Table) Bound(session string) (paths []string) {
	t.AscendBound(session, "", "", func(path string) bool {
		paths = append(paths, path)
		return true
	})
	return paths
}

// AscendBound is Ascend over the paths that are bound to a session.
func (t *Table) AscendBound(session, from, to string, see func(path string) bool) {
	t.bound.Ascend(binding{session, from}, func(b binding) bool {
		return b.session == session && (to == "" || b.path < to) && see(b.path)
	})
}

// Each calls see with the records in the range of a query, in the order of their paths, until it returns false.
func (t *Table) Each(q Query, see func(*leasehold.Record) bool) {
	if q.Session == "" {
		t.Ascend(q.From, q.To, see)
		return
	}
	t.AscendBound(q.Session, q.From, q.To, func(path string) bool {
		r, _ := t.Get(path)
		return see(r)
	})
}

// Count returns how many records are in the range of a query. It counts by
// halving over the ranks of the tree, so a long range costs no more than a short one. Most ranges are short, and
// then it is cheaper to walk.
func (t *Table) Count(q Query) int {
	n := 0
	t.Ascend(q.From, q.To, func(*leasehold.Record) bool {
		n++
		return n <= shortRange
	})
	if n <= shortRange {
		return n
	}
	below := func(path string) int {
		return sort.Search(t.records.Len(), func(i int) bool {
			at, _, _ := t.records.GetAt(i)
			return at >= path
		})
	}
	end := t.records.Len()
	if q.To != "" {
		end = below(q.To)
	}
	return max(0, end-below(q.From))
}

// shortRange is how many records Count walks over before it halves.
const shortRange = 8

// Scan calls see with everything in the table, until it returns false: the records, the shelves
// and the versions, each in order.
func (t *Table) Scan(see func(value any) bool) (more bool) {
	more = true
	t.records.Scan(func(_ string, r *leasehold.Record) bool { more = see(r); return more })
	if more {
		t.shelves.Scan(func(_ string, shelf *Shelf) bool { more = see(shelf); return more })
	}
	if more {
		t.versions.Scan(func(v *leasehold.Version) bool { more = see(v); return more })
	}
	return more
}

func limited(format string, args ...any) *leasehold.Error {
	return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(format, args...)}
}

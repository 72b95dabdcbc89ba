package record

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A Shelf is where the former versions of one record are. It exists while the record
// keeps some, and for a while after the record was deleted: a record that was deleted by
// mistake, and is made anew, has them all.
type Shelf struct {
	Path    string
	Keep    int           // how many versions it takes: the oldest goes when one more comes
	Deleted timeline.Time // when the record was deleted; 0: it is there
	Written int64         // the calendar when the record was written, in Unix nanoseconds; 0: it is not there
	Holder  string        // who wrote it, if that was done under a lease

	count int // of the versions on it
	bytes int // of all of them, as Table.Bytes counts
}

// Due returns when time alone takes everything away; 0: never.
func (shelf *Shelf) Due() timeline.Time {
	if shelf.Deleted == 0 {
		return 0
	}
	return shelf.Deleted.Add(leasehold.KeepDeleted)
}

func versionBytes(v *leasehold.Version) int { return len(v.Path) + ValueBytes(v.Value, v.Large) }

// kept is what MaxVersions bounds. A record that keeps versions counts for the one that
// it leaves when it is deleted: there is always room for that.
func (st *Store) kept() int { return st.versions + st.keeping }

// Shelf returns the shelf of a path.
func (t *Table) Shelf(path string) (*Shelf, bool) {
	if t == nil {
		return nil, false
	}
	return t.shelves.Get(path)
}

// Shelves returns how many records have a shelf, deleted ones among them.
func (t *Table) Shelves() int { return t.shelves.Len() }

// Drops returns how many former versions a write would drop.
func (t *Table) Drops(w *Write) int {
	shelf, there := t.Shelf(w.Path)
	if !there {
		return 0
	}
	return max(0, shelf.count-keeps(shelf, w))
}

// keeps returns how many versions a record keeps after a write.
func keeps(shelf *Shelf, w *Write) int {
	switch {
	case w.Keep > 0:
		return w.Keep
	case w.Keep < 0 || shelf == nil:
		return 0
	}
	return shelf.Keep
}

// shelving returns by how much a write makes what is kept grow, and whether the record that it replaces, if there is
// one, goes on the shelf.
func shelving(t *Table, there bool, w *Write) (more int, shelved bool) {
	shelf, _ := t.Shelf(w.Path)
	count, keep := 0, keeps(shelf, w)
	if shelf != nil {
		if count = shelf.count; shelf.Deleted == 0 {
			more--
		}
	}
	if keep > 0 {
		more++
	}
	after := count
	if shelved = there && keep > 0; shelved {
		after++
	}
	return more + min(after, keep) - count, shelved
}

// shelve keeps the version that a write replaces, nil if there is none, and records who writes
// now.
func (st *Store) shelve(t *Table, old *leasehold.Record, w Write, wall int64) {
	shelf, there := t.shelves.Get(w.Path)
	keep := keeps(shelf, &w)
	if keep == 0 {
		if there {
			st.DropShelf(t, shelf)
		}
		return
	}
	next := &Shelf{Path: w.Path, Keep: keep, Written: wall, Holder: w.Holder}
	if there {
		next.count, next.bytes = shelf.count, shelf.bytes
	}
	if old != nil {
		st.addVersion(t, next, formerly(shelf, old))
	}
	st.setShelf(t, next)
}

// shelveLast keeps the last version of a record that is deleted.
func (st *Store) shelveLast(t *Table, r *leasehold.Record, now timeline.Time) {
	shelf, there := t.shelves.Get(r.Path)
	if !there {
		return
	}
	last := formerly(shelf, r)
	last.Deleted = true
	next := &Shelf{Path: r.Path, Keep: shelf.Keep, Deleted: now, count: shelf.count, bytes: shelf.bytes}
	st.addVersion(t, next, last)
	st.setShelf(t, next)
}

// formerly returns a record as a version; the shelf, which may be nil, knows who wrote it.
func formerly(shelf *Shelf, r *leasehold.Record) *leasehold.Version {
	v := &leasehold.Version{
		Path: r.Path, Value: r.Value, Large: r.Large, Revision: r.Mod, Create: r.Create, Version: r.Version,
		Session: r.Session, Token: r.Token,
	}
	if shelf != nil {
		v.Written, v.Holder = shelf.written(), shelf.Holder
	}
	return v
}

func (shelf *Shelf) written() time.Time {
	if shelf.Written == 0 {
		return time.Time{}
	}
	return time.Unix(0, shelf.Written).UTC()
}

// addVersion puts a version on a shelf that nobody has seen yet.
func (st *Store) addVersion(t *Table, on *Shelf, v *leasehold.Version) {
	t.versions.Set(v)
	st.versions++
	st.weigh(t, v.Path, v.Value, v.Large, 1)
	on.count, on.bytes = on.count+1, on.bytes+size(v.Path, v.Value, v.Large)
	st.name(v.Large)
}

func (st *Store) dropVersion(t *Table, v *leasehold.Version) {
	t.versions.Delete(v)
	st.versions--
	st.weigh(t, v.Path, v.Value, v.Large, -1)
	st.unname(v.Large)
}

// setShelf stores a shelf in place of the one before, and drops the oldest versions if it has
// too many.
func (st *Store) setShelf(t *Table, shelf *Shelf) {
	for shelf.count > shelf.Keep {
		oldest := t.oldest(shelf.Path)
		st.dropVersion(t, oldest)
		shelf.count, shelf.bytes = shelf.count-1, shelf.bytes-size(oldest.Path, oldest.Value, oldest.Large)
	}
	old, there := t.shelves.Get(shelf.Path)
	st.countKeeping(old, there, -1)
	st.countKeeping(shelf, true, 1)
	t.shelves.Set(shelf.Path, shelf)
}

// DropShelf takes a shelf away with all that is on it. It returns how many versions that were.
func (st *Store) DropShelf(t *Table, shelf *Shelf) int {
	for range shelf.count {
		st.dropVersion(t, t.oldest(shelf.Path))
	}
	st.countKeeping(shelf, true, -1)
	t.shelves.Delete(shelf.Path)
	return shelf.count
}

// countKeeping counts a shelf whose record is there.
func (st *Store) countKeeping(shelf *Shelf, there bool, n int) {
	if there && shelf.Deleted == 0 {
		st.keeping += n
	}
}

// oldest returns the oldest version of a record; nil if it has none.
func (t *Table) oldest(path string) (found *leasehold.Version) {
	t.versions.Ascend(&leasehold.Version{Path: path}, func(v *leasehold.Version) bool {
		if v.Path == path {
			found = v
		}
		return false
	})
	return found
}

// RollBack gives a write the value that its record had at a revision. It reports whether that
// is known.
func (t *Table) RollBack(w *Write, to leasehold.Revision) bool {
	if r, ok := t.Get(w.Path); ok && r.Mod == to {
		w.Value, w.Large = r.Value, r.Large
		return true
	}
	v, ok := t.Former(w.Path, to)
	if ok {
		w.Value, w.Large = v.Value, v.Large
	}
	return ok
}

// Former returns the former version of a record that a revision wrote.
func (t *Table) Former(path string, revision leasehold.Revision) (*leasehold.Version, bool) {
	if t == nil {
		return nil, false
	}
	return t.versions.Get(&leasehold.Version{Path: path, Revision: revision})
}

// DescendFormer calls see with the former versions of a record that are older than a revision, the
// newest first, until it returns false. Those older than 0 are all.
func (t *Table) DescendFormer(path string, before leasehold.Revision, see func(*leasehold.Version) bool) {
	from := &leasehold.Version{Path: path, Revision: before - 1} // of 0: the largest that there is
	t.versions.Descend(from, func(v *leasehold.Version) bool { return v.Path == path && see(v) })
}

// Current returns a record as a version; nil if it is not there. over says that its session is
// over: then it counts as deleted, collected or not.
func (t *Table) Current(path string, over func(*leasehold.Record) bool) *leasehold.Version {
	r, ok := t.records.Get(path)
	if !ok {
		return nil
	}
	shelf, _ := t.shelves.Get(path)
	now := formerly(shelf, r)
	now.Current = true
	if over(r) {
		now.Current, now.Deleted = false, true
		if shelf == nil {
			return nil
		}
	}
	return now
}

// RestoreShelf takes a shelf over from a snapshot, after its record.
func (st *Store) RestoreShelf(t *Table, shelf *Shelf) error {
	_, twice := t.shelves.Get(shelf.Path)
	_, there := t.records.Get(shelf.Path)
	switch {
	case twice:
		return fmt.Errorf("snapshot has the shelf of %q twice", shelf.Path)
	case shelf.Keep <= 0 || there != (shelf.Deleted == 0):
		return fmt.Errorf("snapshot has a shelf of %q that keeps nothing, or whose record is both there and deleted",
			shelf.Path)
	}
	shelf.count, shelf.bytes = 0, 0
	st.setShelf(t, shelf)
	return nil
}

// RestoreVersion takes a former version over from a snapshot, after its shelf.
func (st *Store) RestoreVersion(t *Table, v *leasehold.Version) error {
	shelf, ok := t.shelves.Get(v.Path)
	_, twice := t.versions.Get(v)
	switch {
	case !ok:
		return fmt.Errorf("snapshot has a version of %q, which keeps none", v.Path)
	case twice || shelf.count == shelf.Keep:
		return fmt.Errorf("snapshot has revision %d of %q twice, or more versions than it keeps", v.Revision, v.Path)
	}
	st.addVersion(t, shelf, v)
	return nil
}

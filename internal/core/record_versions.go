package core

import (
	"fmt"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A Shelf is where the former versions of one record stand. It is there while the record
// keeps some, and for a while after the record was deleted: whoever deletes by mistake, and
// makes the record anew, has them all.
type Shelf struct {
	Path    string
	Keep    int    // how many versions it takes: the oldest goes when one more comes
	Deleted Time   // when the record was deleted; 0: it is there
	Written int64  // the calendar when the record was written, in Unix nanoseconds; 0: it is not there
	Holder  string // who wrote it, if that was done under a lease

	count int // of the versions on it
	timer *timer
}

// due is when time alone takes everything away; 0: never.
func (shelf *Shelf) due() Time {
	if shelf.Deleted == 0 {
		return 0
	}
	return shelf.Deleted.Add(leasehold.KeepDeleted)
}

func newVersions() *btree.BTreeG[*leasehold.Version] {
	return btree.NewBTreeGOptions(func(a, b *leasehold.Version) bool {
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.Revision < b.Revision
	}, noLocks)
}

func versionBytes(v *leasehold.Version) int { return len(v.Path) + record.ValueBytes(v.Value, v.Large) }

// kept is what MaxVersions bounds. A record that keeps versions counts for the one that
// it leaves when it is deleted: there is always room for that.
func (s *State) kept() int { return s.versions + s.keeping }

// keeps is how many versions a record keeps after a write.
func keeps(shelf *Shelf, w *write) int {
	switch {
	case w.keep > 0:
		return w.keep
	case w.keep < 0 || shelf == nil:
		return 0
	}
	return shelf.Keep
}

// shelving is by how much a write lets grow what is kept, and its bytes.
func (s *State) shelving(sp *space, old *leasehold.Record, w *write) (more, bytes int) {
	var shelf *Shelf
	if sp != nil {
		shelf, _ = sp.shelves.Get(w.path)
	}
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
	if old.Path != "" && keep > 0 {
		after, bytes = count+1, recordBytes(old)
	}
	after = min(after, keep)
	// What falls off the shelf is not weighed: there is a little less than this says.
	return more + after - count, bytes
}

// shelve takes the version that a write replaces, nil if there is none, and notes who
// writes.
func (s *State) shelve(sp *space, old *leasehold.Record, w write) {
	shelf, there := sp.shelves.Get(w.path)
	keep := keeps(shelf, &w)
	if keep == 0 {
		if there {
			s.dropShelf(sp, shelf)
		}
		return
	}
	next := &Shelf{Path: w.path, Keep: keep, Written: s.wall, Holder: w.holder}
	if there {
		next.count, next.timer = shelf.count, shelf.timer
	}
	if old != nil {
		s.addVersion(sp, formerly(shelf, old))
		next.count++
	}
	s.setShelf(sp, next)
}

// shelveLast takes the version of a record that is deleted.
func (s *State) shelveLast(sp *space, r *leasehold.Record) {
	shelf, there := sp.shelves.Get(r.Path)
	if !there {
		return
	}
	last := formerly(shelf, r)
	last.Deleted = true
	s.addVersion(sp, last)
	next := &Shelf{Path: r.Path, Keep: shelf.Keep, Deleted: s.now, count: shelf.count + 1, timer: shelf.timer}
	s.setShelf(sp, next)
}

// formerly is a record as a version; the shelf, which may be nil, knows who wrote it.
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
	return calendar(shelf.Written)
}

func (s *State) addVersion(sp *space, v *leasehold.Version) {
	sp.versions.Set(v)
	s.versions++
	s.recordBytes += versionBytes(v)
	s.name(v.Large)
}

func (s *State) dropVersion(sp *space, v *leasehold.Version) {
	sp.versions.Delete(v)
	s.versions--
	s.recordBytes -= versionBytes(v)
	s.unname(v.Large)
}

// setShelf puts a shelf in the place of the one that is there, and lets fall what it can
// not take.
func (s *State) setShelf(sp *space, shelf *Shelf) {
	for shelf.count > shelf.Keep {
		s.dropVersion(sp, oldest(sp, shelf.Path))
		shelf.count--
	}
	old, there := sp.shelves.Get(shelf.Path)
	s.countKeeping(old, there, -1)
	s.countKeeping(shelf, true, 1)
	s.values = true
	if shelf.timer == nil {
		shelf.timer = newTimer(dueShelf, sp, shelf.Path)
	}
	s.due.Set(shelf.timer, shelf.due())
	sp.shelves.Set(shelf.Path, shelf)
}

// dropShelf takes a shelf away with all that is on it.
func (s *State) dropShelf(sp *space, shelf *Shelf) {
	for range shelf.count {
		s.dropVersion(sp, oldest(sp, shelf.Path))
	}
	s.countKeeping(shelf, true, -1)
	s.due.Set(shelf.timer, 0)
	sp.shelves.Delete(shelf.Path)
}

// countKeeping counts a shelf whose record is there.
func (s *State) countKeeping(shelf *Shelf, there bool, n int) {
	if there && shelf.Deleted == 0 {
		s.keeping += n
	}
}

// oldest returns the oldest version of a record; nil if it has none.
func oldest(sp *space, path string) (found *leasehold.Version) {
	sp.versions.Ascend(&leasehold.Version{Path: path}, func(v *leasehold.Version) bool {
		if v.Path == path {
			found = v
		}
		return false
	})
	return found
}

// writer is who writes under a lease that is alive; empty if there is none.
func (s *State) writer(sp *space, f Fence) string {
	if sp == nil || f.Lease == "" {
		return ""
	}
	claim, ok := sp.claims.Get(f.Lease)
	if !ok {
		return ""
	}
	return claim.Holder
}

// rollBack gives a write the value that its record had at a revision; 0 for none.
func (s *State) rollBack(sp *space, w *write, from leasehold.Revision) *leasehold.Error {
	if from == 0 {
		return nil
	}
	if sp != nil {
		if r, ok := sp.records.Get(w.path); ok && r.Mod == from {
			w.value, w.large = r.Value, r.Large
			return nil
		}
		if v, ok := sp.versions.Get(&leasehold.Version{Path: w.path, Revision: from}); ok {
			w.value, w.large = v.Value, v.Large
			return nil
		}
	}
	return noVersion(w.path, from)
}

func noVersion(path string, revision leasehold.Revision) *leasehold.Error {
	return refuse(leasehold.NotFound, "%s has no version of revision %d: it never had, or has kept newer ones only", path, revision).Err
}

// Versions shows up to so many versions of a record, the newest first: the one that it is
// now, and the former ones that are kept. before is where to go on from, a revision; 0 is
// the newest. next is that of the next page; 0 at the end.
func (v View) Versions(namespace, path string, before leasehold.Revision, most int) (list []leasehold.Version, next leasehold.Revision) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, 0
	}
	if most <= 0 || most > leasehold.MaxPage {
		most = leasehold.MaxPage
	}
	if now := v.current(sp, path); now != nil && (before == 0 || now.Revision < before) {
		list = append(list, *now)
	}
	from := &leasehold.Version{Path: path, Revision: before - 1} // of 0: the largest that there is
	sp.versions.Descend(from, func(former *leasehold.Version) bool {
		if former.Path != path {
			return false
		}
		if len(list) == most {
			next = list[most-1].Revision
			return false
		}
		list = append(list, *former)
		return true
	})
	return list, next
}

// Version shows the version of a record that a revision wrote.
func (v View) Version(namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error) {
	sp := v.s.space(namespace)
	if sp == nil {
		return leasehold.Version{}, noVersion(path, revision)
	}
	if now := v.current(sp, path); now != nil && now.Revision == revision {
		return *now, nil
	}
	former, ok := sp.versions.Get(&leasehold.Version{Path: path, Revision: revision})
	if !ok {
		return leasehold.Version{}, noVersion(path, revision)
	}
	return *former, nil
}

// Keeps tells how many former versions a record keeps.
func (v View) Keeps(namespace, path string) int {
	if sp := v.s.space(namespace); sp != nil {
		if shelf, ok := sp.shelves.Get(path); ok {
			return shelf.Keep
		}
	}
	return 0
}

// current is a record as a version; nil if it is not there. One whose session is over at
// the stamp is deleted, collected or not.
func (v View) current(sp *space, path string) *leasehold.Version {
	r, ok := sp.records.Get(path)
	if !ok {
		return nil
	}
	shelf, _ := sp.shelves.Get(path)
	now := formerly(shelf, r)
	now.Current = true
	if v.s.recordOver(sp, r) {
		now.Current, now.Deleted = false, true
		if shelf == nil {
			return nil
		}
	}
	return now
}

func (s *State) restoreShelf(sp *space, shelf *Shelf) error {
	_, twice := sp.shelves.Get(shelf.Path)
	_, there := sp.records.Get(shelf.Path)
	switch {
	case twice:
		return fmt.Errorf("snapshot has the shelf of %q twice", shelf.Path)
	case shelf.Keep <= 0 || there != (shelf.Deleted == 0):
		return fmt.Errorf("snapshot has a shelf of %q that keeps nothing, or whose record is both there and deleted", shelf.Path)
	}
	shelf.count, shelf.timer = 0, nil
	s.setShelf(sp, shelf)
	return nil
}

func (s *State) restoreVersion(sp *space, v *leasehold.Version) error {
	shelf, ok := sp.shelves.Get(v.Path)
	_, twice := sp.versions.Get(v)
	switch {
	case !ok:
		return fmt.Errorf("snapshot has a version of %q, which keeps none", v.Path)
	case twice || shelf.count == shelf.Keep:
		return fmt.Errorf("snapshot has revision %d of %q twice, or more versions than it keeps", v.Revision, v.Path)
	}
	shelf.count++ // nobody else has seen it yet
	s.addVersion(sp, v)
	return nil
}

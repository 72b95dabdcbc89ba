package record

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A Store has what is counted of the records of all namespaces, and the large values that they
// name. The records themselves are in a Table for each namespace.
type Store struct {
	records  int
	bytes    int // of their paths and values, and of those of former versions
	versions int // former ones
	keeping  int // records that keep some

	larges     btree.Map[string, naming] // by digest
	largeBytes int64                     // of all of them
	named      []leasehold.Large
	freed      []leasehold.Large
}

// A Write is the new content of a record.
type Write struct {
	Path, Value, Session string
	Large                *leasehold.Large
	Keep                 int    // how many former versions; 0: as before, below: none
	Holder               string // who writes, if that is known
	Lease                string // that it stands for, if any
	Loose                bool   // it does not end with its session
}

// A Stamp is what a write is made with.
type Stamp struct {
	Revision leasehold.Revision
	Token    leasehold.Token // of its writer; 0: it has none
	Wall     int64           // the calendar, in Unix nanoseconds
}

func (w *Write) bytes() int { return len(w.Path) + ValueBytes(w.Value, w.Large) }

// Bytes returns what a record weighs in the limits.
func Bytes(r *leasehold.Record) int { return len(r.Path) + ValueBytes(r.Value, r.Large) }

// largeBytes is what the name of a large value weighs.
const largeBytes = 40

// ValueBytes returns what a value weighs in the limits.
func ValueBytes(value string, large *leasehold.Large) int {
	if large != nil {
		return largeBytes
	}
	return len(value)
}

// size returns the bytes of a path and its value. Unlike ValueBytes it counts large values in full: they are not in
// memory, but somebody pays for the disk.
func size(path, value string, large *leasehold.Large) int {
	if large != nil {
		return len(path) + int(large.Size)
	}
	return len(path) + len(value)
}

// Begin forgets which large values were named and freed.
func (st *Store) Begin() { st.named, st.freed = nil, nil }

// Copy returns a store that stays as it is while the original goes on.
func (st *Store) Copy() Store {
	c := *st
	c.larges, c.named, c.freed = *st.larges.Copy(), nil, nil
	return c
}

// Versions returns how many former versions there are.
func (st *Store) Versions() int { return st.versions }

// Put makes a record, or changes it. It returns what it is and what it was, nil if it was not
// there.
func (st *Store) Put(t *Table, w Write, at Stamp) (r, old *leasehold.Record) {
	old, _ = t.records.Get(w.Path)
	r = &leasehold.Record{
		Path: w.Path, Value: w.Value, Large: w.Large, Session: w.Session, Lease: w.Lease,
		Create: at.Revision, Mod: at.Revision, Version: 1, Token: at.Token,
	}
	// What is named anew comes before what is given up: a value that is in both is never
	// without a name.
	st.name(r.Large)
	if old != nil {
		r.Create, r.Version, r.Token = old.Create, old.Version+1, max(old.Token, at.Token)
	}
	// The former version takes over the name of a large value before the record gives it up, so
	// that the value is not freed in between.
	st.shelve(t, old, w, at.Wall)
	if old != nil {
		st.uncount(t, old)
	}
	st.insert(t, r, w.Loose)
	return r, old
}

// Unlink lets a record stand for nothing, and bound to no session. It is a change of the record, and no version
// of it: what it says is the same. It returns what it is now.
func (st *Store) Unlink(t *Table, old *leasehold.Record, at leasehold.Revision) *leasehold.Record {
	r := *old
	r.Lease, r.Session, r.Mod, r.Version = "", "", at, old.Version+1
	st.name(r.Large)
	st.uncount(t, old)
	st.insert(t, &r, false)
	return &r
}

// Link lets a record stand for a lease, which is bound to no session. As with Unlink, it is no version of it.
func (st *Store) Link(t *Table, old *leasehold.Record, lease string, at Stamp) *leasehold.Record {
	r := *old
	r.Lease, r.Mod, r.Version, r.Token = lease, at.Revision, old.Version+1, max(old.Token, at.Token)
	st.name(r.Large)
	st.uncount(t, old)
	st.insert(t, &r, true)
	return &r
}

// Drop deletes a record.
func (st *Store) Drop(t *Table, r *leasehold.Record, now timeline.Time) {
	t.records.Delete(r.Path)
	st.shelveLast(t, r, now)
	st.uncount(t, r)
}

// Restore takes a record over from a snapshot. It reports whether it was there already.
func (st *Store) Restore(t *Table, r *leasehold.Record, loose bool) (twice bool) {
	if _, twice = t.records.Get(r.Path); !twice {
		st.name(r.Large)
		st.insert(t, r, loose)
	}
	return twice
}

// insert puts a record into a table. A loose one does not end with its session.
func (st *Store) insert(t *Table, r *leasehold.Record, loose bool) {
	t.records.Set(r.Path, r)
	st.records++
	st.weigh(t, r.Path, r.Value, r.Large, 1)
	if r.Lease != "" {
		t.linked++
	}
	if r.Session != "" && !loose {
		t.bound.Set(binding{r.Session, r.Path})
	}
}

// weigh counts the bytes of a value that comes, 1, or goes, -1.
func (st *Store) weigh(t *Table, path, value string, large *leasehold.Large, n int) {
	st.bytes += n * (len(path) + ValueBytes(value, large))
	t.bytes += n * size(path, value, large)
}

// uncount takes a record out of all accounts.
func (st *Store) uncount(t *Table, r *leasehold.Record) {
	st.records--
	st.weigh(t, r.Path, r.Value, r.Large, -1)
	st.unname(r.Large)
	if r.Lease != "" {
		t.linked--
	}
	if r.Session != "" {
		t.bound.Delete(binding{r.Session, r.Path})
	}
}

// A Growth is how much more there is after a write. What falls off a shelf is not weighed: there is a little less
// than this says.
type Growth struct {
	Records int
	Bytes   int // as Table.Bytes counts them
	Former  int // bytes of the former versions that a record which is made anew takes over
	kept    int
	weight  int // as Store counts bytes
}

// Growth returns how much more there would be after a write. The table may be nil.
func (t *Table) Growth(w *Write) (g Growth) {
	g.weight, g.Bytes = w.bytes(), size(w.Path, w.Value, w.Large)
	old, there := t.Get(w.Path)
	kept, shelved := shelving(t, there, w)
	g.kept = kept
	switch {
	case !there:
		g.Records = 1
		if shelf, ok := t.Shelf(w.Path); ok && keeps(shelf, w) > 0 {
			g.Former = shelf.bytes
		}
	case !shelved:
		g.weight -= Bytes(old)
		g.Bytes -= size(old.Path, old.Value, old.Large)
	}
	return g
}

// Room refuses writes, to different paths, that would make too much of something. Writes that
// make it less are let through even above a limit, or nobody could get below it again. The
// table may be nil.
func (st *Store) Room(t *Table, writes []Write) *leasehold.Error {
	records, bytes, kept := st.records, st.bytes, st.kept()
	for i := range writes {
		g := t.Growth(&writes[i])
		records, bytes, kept = records+g.Records, bytes+g.weight, kept+g.kept
	}
	switch {
	case records > leasehold.MaxRecords && records > st.records:
		return limited("there are %d records already, which is as many as there can be: delete some", st.records)
	case bytes > leasehold.MaxRecordBytes && bytes > st.bytes:
		return limited("records have %d bytes already, and can have %d: delete some", st.bytes,
			leasehold.MaxRecordBytes)
	case kept > leasehold.MaxVersions && kept > st.kept():
		return limited("there are %d former versions of records already, which is as many as there can be: "+
			"let records keep fewer", st.versions)
	}
	return nil
}

package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
)

// A world is a store with one table, and the counters that the core would have.
type world struct {
	Store
	Table
	revision leasehold.Revision
}

func newWorld() *world { return &world{Table: NewTable()} }

func (w *world) put(write Write) *leasehold.Record {
	w.revision++
	r, _ := w.Put(&w.Table, write, Stamp{Revision: w.revision, Wall: 1})
	return r
}

func (w *world) drop(path string) {
	w.revision++
	r, _ := w.Get(path)
	w.Drop(&w.Table, r, 1)
}

func (w *world) check() error {
	var found []error
	c := Checker{That: func(ok bool, format string, args ...any) {
		if !ok {
			found = append(found, fmt.Errorf(format, args...))
		}
	}}
	c.Table(&w.Table, Scope{
		Name: "default", Revision: w.revision, Token: 9,
		Session: func(id string) bool { return id == "s1" }, Bound: func(string) {},
		Loose: func(*leasehold.Record) bool { return false },
	})
	c.Store(&w.Store)
	return errors.Join(found...)
}

// filled has two records that are bound or not, one that keeps a version, and one that was deleted
// and had kept one.
func filled(t *testing.T) *world {
	w := newWorld()
	w.put(Write{Path: "config", Value: "v1"})
	w.put(Write{Path: "alive", Value: "yes", Session: "s1"})
	w.put(Write{Path: "state", Large: &leasehold.Large{Size: 7}, Keep: 3})
	w.put(Write{Path: "state", Value: "2"})
	w.put(Write{Path: "gone", Value: "1", Keep: 2})
	w.drop("gone")
	if err := w.check(); err != nil {
		t.Fatalf("a store that nobody has damaged: %v", err)
	}
	return w
}

func (w *world) damageRecord(path string, change func(*leasehold.Record)) {
	r, _ := w.Table.records.Get(path)
	damaged := *r
	change(&damaged)
	w.Table.records.Set(path, &damaged)
}

func (w *world) damageShelf(path string, change func(*Shelf)) {
	shelf, _ := w.shelves.Get(path)
	damaged := *shelf
	change(&damaged)
	w.shelves.Set(path, &damaged)
}

// TestCheckFinds damages a store in every way that a Checker is there for. An invariant that
// finds nothing would let every other test pass.
func TestCheckFinds(t *testing.T) {
	for _, test := range []struct {
		damage func(w *world)
		says   string
	}{
		{func(w *world) { w.larges = Store{}.larges }, "is named 1 times, 0 are counted"},
		{func(w *world) { w.name(&leasehold.Large{SHA256: leasehold.Digest{1}}) },
			"1 large values of 7 bytes are named, 2 of 7 are counted"},
		{func(w *world) { w.largeBytes++ }, "1 large values of 7 bytes are named, 1 of 8 are counted"},
		{func(w *world) { w.Store.versions++ }, "2 versions of 1 records are kept, 3 of 1 are counted"},
		{func(w *world) { w.keeping++ }, "2 versions of 1 records are kept, 2 of 2 are counted"},
		{func(w *world) { w.Table.versions.Delete(w.oldest("state")) }, `record "state" counts 1 versions, and has 0`},
		{func(w *world) { w.shelves.Delete("state") }, `record "state" has 1 versions, and keeps none`},
		{func(w *world) { w.damageShelf("state", func(s *Shelf) { s.Keep = 0 }) }, `record "state" keeps 0 versions, and has 1`},
		{func(w *world) { w.damageShelf("state", func(s *Shelf) { s.Path = "other" }) },
			`the shelf of "other" is filed under "state"`},
		{func(w *world) { w.damageShelf("state", func(s *Shelf) { s.Deleted = 1 }) },
			`record "state" is there: true, and was deleted at 1`},
		{func(w *world) { w.oldest("state").Current = true }, `of "state" is former and current`},
		{func(w *world) { w.oldest("state").Revision = 1000 }, `and has a former version of 1000`},
		{func(w *world) { w.oldest("gone").Create = 0 }, `a version of "gone" was made at 0`},
		{func(w *world) {
			w.damageRecord("state", func(r *leasehold.Record) { r.Large = &leasehold.Large{Size: 7} })
		}, `record "state" has a value and a large value`},
		{func(w *world) { w.damageRecord("config", func(r *leasehold.Record) { r.Path = "other" }) },
			`record "other" is filed under "config"`},
		{func(w *world) { w.damageRecord("config", func(r *leasehold.Record) { r.Mod = 99 }) }, `record "config" was made at`},
		{func(w *world) { w.damageRecord("config", func(r *leasehold.Record) { r.Version = 2 }) }, `record "config" has version 2`},
		{func(w *world) { w.damageRecord("config", func(r *leasehold.Record) { r.Token = 99 }) }, "under token 99 above"},
		{func(w *world) {
			w.damageRecord("config", func(r *leasehold.Record) { r.Value = strings.Repeat("x", leasehold.MaxValue+1) })
		}, `record "config" has 65537 bytes`},
		{func(w *world) { w.damageRecord("config", func(r *leasehold.Record) { r.Session = "s9" }) },
			`record "config" is bound to session "s9"`},
		{func(w *world) { w.bound.Delete(binding{"s1", "alive"}) }, `record "alive" would not end with its session`},
		{func(w *world) { w.bound.Set(binding{"s1", "config"}) }, "1 records have sessions, 2 bindings exist"},
		{func(w *world) { w.Store.records++ }, "there are 3 records of"},
	} {
		w := filled(t)
		test.damage(w)
		if err := w.check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q is not found, but %v", test.says, err)
		}
	}
}

// TestRoomIsBounded fills the room for records, by their number and by their bytes.
func TestRoomIsBounded(t *testing.T) {
	room := func(w *world, paths ...string) *leasehold.Error {
		var writes []Write
		for i := 0; i < len(paths); i += 2 {
			writes = append(writes, Write{Path: paths[i], Value: paths[i+1]})
		}
		return w.Room(&w.Table, writes)
	}
	limited := func(t *testing.T, err *leasehold.Error) {
		t.Helper()
		if err == nil || err.Code != leasehold.Limited {
			t.Errorf("there is room: %v", err)
		}
	}
	t.Run("number", func(t *testing.T) {
		w := newWorld()
		w.put(Write{Path: "a", Value: "1"})
		w.Store.records = leasehold.MaxRecords
		limited(t, room(w, "b", "1"))
		limited(t, room(w, "a", "3", "b", "3"))
		if err := room(w, "a", "2"); err != nil {
			t.Errorf("one that is there cannot be changed: %v", err)
		}
		w.drop("a")
		if err := room(w, "b", "1"); err != nil {
			t.Errorf("after one was deleted there is no room: %v", err)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		w := newWorld()
		w.put(Write{Path: "a", Value: "12345"})
		w.Store.bytes = leasehold.MaxRecordBytes
		limited(t, room(w, "b", ""))
		limited(t, room(w, "a", "123456"))
		for _, value := range []string{"54321", "1"} {
			if err := room(w, "a", value); err != nil {
				t.Errorf("one that is there cannot become %q: %v", value, err)
			}
		}
	})
}

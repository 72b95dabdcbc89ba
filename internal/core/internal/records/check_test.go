package records

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/alarm"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/learn"
	"github.com/leasehold/leasehold/internal/core/internal/reserve"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/internal/unit"
	"github.com/leasehold/leasehold/internal/core/record"
)

// watched is a store that tells which records it made.
type watched struct {
	*store
	made []*records
}

func (w *watched) New() kernel.Records {
	s := w.store.New().(*records)
	w.made = append(w.made, s)
	return s
}

// newState returns a state, and its records.
func newState(t *testing.T) (*kernel.State, *watched) {
	t.Helper()
	made := &watched{store: &store{}}
	s := kernel.NewAt(kernel.NewestLevel, &kernel.Subjects{
		NewAreas: area.New, NewTasks: task.New, NewAlarms: alarm.New, NewReservations: reserve.New,
		NewPools: unit.New, NewLearning: learn.New, NewRecords: func() kernel.RecordStore { return made },
	})
	link := &kernel.Link{Resource: "door", ID: "l1", Holder: "ann", Wait: true, Mirror: "queue/"}
	apply(t, s,
		&kernel.OpenSession{Namespace: "default", ID: "s", TTL: time.Minute},
		&kernel.PutRecord{Namespace: "default", Path: "alive", Session: "s"},
		&kernel.PutRecord{Namespace: "default", Path: "queue/1", Session: "s", Link: link},
		&kernel.Acquire{Namespace: "default", Resource: "door", ID: "l2", Holder: "bob", TTL: time.Hour, Wait: time.Hour},
		&kernel.PutRecord{Namespace: "default", Path: "desk", Link: &kernel.Link{Resource: "desk", Mirror: "desk", Stay: true}},
		&kernel.Acquire{Namespace: "default", Resource: "desk", ID: "l3", Holder: "cyd", TTL: time.Hour},
	)
	if err := s.Check(); err != nil {
		t.Fatalf("a state that nobody has damaged: %v", err)
	}
	return s, made
}

func apply(t *testing.T, s *kernel.State, commands ...kernel.Command) {
	t.Helper()
	result, err := s.Apply(kernel.Time(time.Hour), int64(time.Hour), commands)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range result.Answers {
		if a.Err != nil {
			t.Fatalf("%T: %v", commands[i], a.Err)
		}
	}
}

// TestCheckFinds damages one thing at a time.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		damage func(w *watched, s *records)
		says   string
	}{
		{func(_ *watched, s *records) { s.shown++ }, "3 claims have records, 4 are counted, 3 records are linked"},
		{func(_ *watched, s *records) { popMin(s.claimEnds) }, "and its record is not noted"},
		{func(_ *watched, s *records) { popMin(s.sessionEnds) }, "session s has records and ends at 3660000000000, which is not noted"},
		{func(_ *watched, s *records) { s.sessionEnds.Set(ending{1, "x"}) }, "1 sessions have records, 2 are noted"},
		{func(_ *watched, s *records) { s.mirrors.Delete("door") }, "1 resources are mirrored, 2 are counted"},
		{func(_ *watched, s *records) { s.mirrors.Set("nobody", "x/") }, `default/nobody is mirrored below "x/", and nobody has or wants it`},
		{func(_ *watched, s *records) { s.mirrors.Set("door", "other/") }, `l1 has no record below "other/", where door is mirrored`},
		{func(w *watched, s *records) {
			w.Unlink(&s.table, s.Get("desk"), s.Get("desk").Mod)
		}, `l3 shows as record "desk", which does not stand for it`},
		{func(w *watched, s *records) { w.Put(&s.table, record.Write{Path: "x"}, record.Stamp{}) }, `record "x" was made at 0`},
		{func(w *watched, _ *records) { w.hand.reserved = []string{"x"} }, `has reserved ["x"]`},
	} {
		s, made := newState(t)
		test.damage(made, made.made[0])
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

// TestACopyHasWhatWasThere: records that are copied stay as they are, and nothing is due in the copy.
func TestACopyHasWhatWasThere(t *testing.T) {
	t.Parallel()
	s, made := newState(t)
	pieces := func(r kernel.Records) (list []any) {
		r.Pieces(func(piece any) bool { list = append(list, piece); return true })
		return list
	}
	copied := made.made[0].Copy()
	before := pieces(copied)
	apply(t, s, &kernel.DeleteRecord{Namespace: "default", Range: true})
	if now := pieces(copied); len(before) == 0 || !slices.EqualFunc(now, before, samePiece) {
		t.Errorf("a copy had %v, and has %v", before, now)
	}
	if left := pieces(made.made[0]); len(left) != 0 {
		t.Errorf("after all records were deleted there are %v", left)
	}
}

func samePiece(a, b any) bool {
	if m, ok := a.(*Mirror); ok {
		other, ok := b.(*Mirror)
		return ok && *m == *other
	}
	r, ok := a.(*leasehold.Record)
	other, same := b.(*leasehold.Record)
	return ok && same && r == other
}

func popMin(ends *btree.Tree[ending]) {
	first, _ := ends.Min()
	ends.Delete(first)
}

package kernel

import (
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

// A trial runs leases of kinds one after the other, in virtual time.
type trial struct {
	t  *testing.T
	s  *State
	at time.Duration
	n  int
}

func newTrial(t *testing.T) *trial { return &trial{t: t, s: newState()} }

func ofKind(kind string) leasehold.Labels { return leasehold.Labels{{Key: kindLabel, Value: kind}} }

// take acquires, for as long as the TTL says.
func (tr *trial) take(kind string, ttl time.Duration) string {
	tr.t.Helper()
	tr.n++
	id := fmt.Sprint("id", tr.n)
	a := apply(tr.t, tr.s, tr.at, &Acquire{Namespace: "default", Resource: "gpu", ID: id, Holder: "ann", Labels: ofKind(kind), TTL: ttl})
	if a.Err != nil {
		tr.t.Fatal(a.Err)
	}
	return id
}

// done holds for a while and gives back.
func (tr *trial) done(kind string, held time.Duration) {
	tr.t.Helper()
	id := tr.take(kind, leasehold.MaxTTL)
	tr.at += held
	apply(tr.t, tr.s, tr.at, &Release{Namespace: "default", ID: id})
}

// dies lets a lease expire.
func (tr *trial) dies(kind string, ttl time.Duration) {
	tr.t.Helper()
	tr.take(kind, ttl)
	tr.at += ttl
	apply(tr.t, tr.s, tr.at, &Tick{})
}

// picked is the TTL that a lease of a kind gets.
func (tr *trial) picked(kind string, pick TTLPick) time.Duration {
	tr.t.Helper()
	tr.n++
	id := fmt.Sprint("id", tr.n)
	a := apply(tr.t, tr.s, tr.at, &Acquire{
		Namespace: "default", Resource: "gpu", ID: id, Holder: "ann", Labels: ofKind(kind), TTL: 30 * time.Second, Pick: pick,
	})
	if a.Err != nil {
		tr.t.Fatal(a.Err)
	}
	// The same moment: nothing is learned that would matter here.
	apply(tr.t, tr.s, tr.at, &Change{Namespace: "default", ID: id, Holder: "bob"})
	apply(tr.t, tr.s, tr.at, &Release{Namespace: "default", ID: id})
	return a.Lease.TTL
}

func (tr *trial) at95(kind string) time.Duration {
	return tr.s.space("default").recent("gpu", kind).At(95)
}

func TestKindNames(t *testing.T) {
	command := func(s string) leasehold.Labels { return leasehold.Labels{{Key: "command", Value: s}} }
	long := "a name that is longer than any kind can have, and ends in an umlaut: ä"
	for _, c := range []struct {
		labels leasehold.Labels
		holder string
		want   string
	}{
		{nil, "trainer-17", ""},
		{leasehold.Labels{{Key: "team", Value: "vision"}}, "trainer-17", ""},
		{command("python train.py"), "trainer-17", "python train.py|trainer"},
		{command("python train.py"), "trainer", "python train.py|trainer"},
		{command("make"), "ann@gpu-3:4711", "make|ann@gpu"},
		{command("make"), "job_2026-05-17", "make|job"},
		{command("make"), "1234", "make|1234"},
		{ofKind("nightly"), "trainer-17", "nightly"},
		{append(command("make"), ofKind("nightly")...), "trainer-17", "nightly"},
		{append(command("make"), ofKind("")...), "trainer-17", "make|trainer"},
		{ofKind(long), "ann", long[:64]},
		{ofKind("äääääääääääääääääääääääääääääääää"), "ann", "ääääääääääääääääääääääääääääääää"},
		{ofKind("xäääääääääääääääääääääääääääääääää"), "ann", "xäääääääääääääääääääääääääääääää"},
		{ofKind("\xff\xff\xff"), "ann", "\xff\xff\xff"},
	} {
		if got := KindName(c.labels, c.holder); got != c.want {
			t.Errorf("%v of %s is of kind %q, want %q", c.labels, c.holder, got, c.want)
		}
	}
	every := ""
	for range 200 {
		every += "\x80"
	}
	if got := KindName(ofKind(every), "ann"); got != "" {
		t.Errorf("a text that has no beginning of a character becomes %q", got)
	}
}

// TestCrashesTeachNothing: a holder that died after a second did not finish in a second; and one whose lease of a day
// ran out did not need a day.
func TestCrashesTeachNothing(t *testing.T) {
	tr := newTrial(t)
	for range 8 {
		tr.done("train", time.Hour)
	}
	for range 60 {
		tr.dies("train", time.Second)
		tr.dies("train", 24*time.Hour)
	}
	if got := tr.at95("train"); got != 0 {
		t.Errorf("after 120 crashes the finished ones are forgotten, and %v is said to be usual", got)
	}
	for range 8 {
		tr.done("train", time.Hour)
		tr.dies("train", time.Second)
	}
	if got := tr.at95("train"); got != time.Hour {
		t.Errorf("an hour is learned as %v", got)
	}
	if got := tr.picked("train", TTLUnattended); got != 2*time.Hour {
		t.Errorf("a lease that nobody renews lasts %v", got)
	}
}

// TestKindsAreLearnedAnew: what takes ten times as long from some day on is known after sixteen leases.
func TestKindsAreLearnedAnew(t *testing.T) {
	tr := newTrial(t)
	for range 64 {
		tr.done("train", time.Minute)
	}
	needed50, needed95 := 0, 0
	for i := range 20 {
		tr.done("train", 10*time.Minute)
		recent := tr.s.space("default").recent("gpu", "train")
		if needed50 == 0 && recent.At(50) == 10*time.Minute {
			needed50 = i + 1
		}
		if needed95 == 0 && recent.At(95) == 10*time.Minute {
			needed95 = i + 1
		}
	}
	if needed50 == 0 || needed50 > 16 || needed95 == 0 || needed95 > 2 {
		t.Errorf("it took %d leases until half of them were known, and %d for nineteen of twenty", needed50, needed95)
	}
}

// TestLearnedTTLs: who renews is missed after two minutes at most; who does not gets twice what nineteen of twenty
// need, between ten minutes and a day.
func TestLearnedTTLs(t *testing.T) {
	tr := newTrial(t)
	if got := tr.picked("new", TTLAuto); got != 2*time.Minute {
		t.Errorf("nothing is known, and the ttl is %v", got)
	}
	if got := tr.picked("new", TTLUnattended); got != 24*time.Hour {
		t.Errorf("nothing is known, and the ttl of one that nobody renews is %v", got)
	}
	for range 8 {
		tr.done("short", time.Second)
		tr.done("long", 90*time.Minute)
		tr.done("huge", 20*time.Hour)
	}
	for kind, want := range map[string]time.Duration{"short": 10 * time.Minute, "long": 3 * time.Hour, "huge": 24 * time.Hour} {
		if got := tr.picked(kind, TTLUnattended); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if got := tr.picked(kind, TTLAuto); got > 2*time.Minute || got < time.Minute {
			t.Errorf("%s: with renewals %v", kind, got)
		}
	}
	apply(t, tr.s, tr.at, &Define{Namespace: "default", Definition: leasehold.Definition{Path: "gpu", DefaultTTL: time.Minute, LargestTTL: time.Hour}})
	for kind, want := range map[string]time.Duration{"long": time.Hour, "new": time.Minute} {
		if got := tr.picked(kind, TTLUnattended); got != want {
			t.Errorf("%s under a definition: %v, want %v", kind, got, want)
		}
	}
}

// TestHeldLongByKind: a long job raises no alarm because there are short ones.
func TestHeldLongByKind(t *testing.T) {
	tr := newTrial(t)
	for range 30 {
		tr.done("short", 5*time.Second)
	}
	for range 8 {
		tr.done("long", time.Hour)
	}
	for range 64 {
		tr.done("short", 5*time.Second)
	}
	count := func() int {
		list, _ := tr.s.View(0).Alarms("default", AlarmQuery{Most: 10, Kind: leasehold.HeldLong})
		return len(list)
	}
	tr.take("long", leasehold.MaxTTL)
	tr.at += 150 * time.Minute
	apply(t, tr.s, tr.at, &Tick{})
	if n := count(); n != 0 {
		t.Errorf("%d alarms about a job that usually takes an hour, after two and a half", n)
	}
	tr.at += time.Hour
	apply(t, tr.s, tr.at, &Tick{})
	if n := count(); n != 1 {
		t.Errorf("%d alarms after three and a half hours", n)
	}
}

// TestKindsAreBounded: ten thousand kinds leave the newest 1,024 of their namespace, and nothing of another's is lost.
func TestKindsAreBounded(t *testing.T) {
	tr := newTrial(t)
	apply(t, tr.s, 0, &Acquire{Namespace: "other", Resource: "gpu", ID: "o", Holder: "ann", Labels: ofKind("o"), TTL: time.Hour})
	apply(t, tr.s, 0, &Release{Namespace: "other", ID: "o"})
	apply(t, tr.s, 0, &Define{Namespace: "other", Definition: leasehold.Definition{Path: "gpu", Grace: time.Second}}) // which keeps it
	for i := range 10000 {
		tr.done(fmt.Sprint("kind ", i), time.Second)
	}
	sp := tr.s.space("default")
	if sp.kinds.byName.Len() != maxKindsOne || tr.s.totals.kinds != maxKindsOne+1 {
		t.Errorf("%d kinds, %d in all", sp.kinds.byName.Len(), tr.s.totals.kinds)
	}
	if sp.recent("gpu", "kind 9999") == "" || sp.recent("gpu", fmt.Sprint("kind ", 10000-maxKindsOne)) == "" ||
		sp.recent("gpu", fmt.Sprint("kind ", 9999-maxKindsOne)) != "" {
		t.Error("others were forgotten than the oldest")
	}
	if tr.s.space("other").recent("gpu", "o") == "" {
		t.Error("another namespace forgot its own")
	}
	if err := tr.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestReplicasLearnTheSame: one that was restored in the middle goes on as the other does.
func TestReplicasLearnTheSame(t *testing.T) {
	tr := newTrial(t)
	for i := range 2000 {
		tr.done(fmt.Sprint(i*i%1500), time.Duration(i%7)*time.Minute)
	}
	again, err := Restore(withoutErrors(tr.s.Pieces()), tr.s.subjects)
	if err != nil {
		t.Fatal(err)
	}
	other := &trial{t: t, s: again, at: tr.at, n: tr.n}
	for i := range 500 {
		tr.done(fmt.Sprint("b", i), time.Minute)
		other.done(fmt.Sprint("b", i), time.Minute)
	}
	if want, got := pieceList(tr.s), pieceList(other.s); !reflect.DeepEqual(want, got) {
		t.Error("they differ")
	}
	if err := again.Check(); err != nil {
		t.Error(err)
	}
	frozen := tr.s.Freeze()
	before := pieceList(frozen)
	tr.done("later", time.Minute)
	if !reflect.DeepEqual(before, pieceList(frozen)) {
		t.Error("a copy learned something")
	}
}

// pieceList is a snapshot, as values.
func pieceList(s *State) (list []any) {
	for p := range s.Pieces() {
		v := reflect.ValueOf(p.Value).Elem().Interface()
		switch v := v.(type) {
		case Kind:
			v.order = 0
			list = append(list, v)
		case Claim:
			v.timer = nil
			list = append(list, v)
		case Resource:
			v.timer = nil
			list = append(list, v)
		default:
			list = append(list, v)
		}
	}
	return list
}

func withoutErrors(pieces iter.Seq[Piece]) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for p := range pieces {
			if k, ok := p.Value.(*Kind); ok {
				p.Value = new(*k) // Restore takes it over
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

package learn

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A trial runs leases of kinds one after the other, in virtual time.
type trial struct {
	t    *testing.T
	s    *kernel.State
	made *learned
	at   time.Duration
	n    int
}

func newTrial(t *testing.T) *trial {
	made := New().(*learned)
	return &trial{t: t, made: made, s: stateWith(made)}
}

func apply(t *testing.T, s *kernel.State, at time.Duration, c kernel.Command) kernel.Answer {
	t.Helper()
	result, err := s.Apply(kernel.Time(time.Hour+at), int64(at), []kernel.Command{c})
	if err != nil {
		t.Fatal(err)
	}
	return result.Answers[0]
}

func ofKind(kind string) leasehold.Labels { return leasehold.Labels{{Key: "kind", Value: kind}} }

// recent is what was learned of a kind.
func (tr *trial) recent(namespace, kind string) usage.Recent {
	found, ok := tr.made.table(namespace).byName.Get(&Kind{Resource: "gpu", Name: kind})
	if !ok {
		return ""
	}
	return found.Recent
}

// take acquires, for as long as the TTL says.
func (tr *trial) take(kind string, ttl time.Duration) string {
	tr.t.Helper()
	tr.n++
	id := fmt.Sprint("id", tr.n)
	a := apply(tr.t, tr.s, tr.at, &kernel.Acquire{Namespace: "default", Resource: "gpu", ID: id, Holder: "ann", Labels: ofKind(kind), TTL: ttl})
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
	apply(tr.t, tr.s, tr.at, &kernel.Release{Namespace: "default", ID: id})
}

// dies lets a lease expire.
func (tr *trial) dies(kind string, ttl time.Duration) {
	tr.t.Helper()
	tr.take(kind, ttl)
	tr.at += ttl
	apply(tr.t, tr.s, tr.at, &kernel.Tick{})
}

// picked is the TTL that a lease of a kind gets.
func (tr *trial) picked(kind string, pick kernel.TTLPick) time.Duration {
	tr.t.Helper()
	tr.n++
	id := fmt.Sprint("id", tr.n)
	a := apply(tr.t, tr.s, tr.at, &kernel.Acquire{
		Namespace: "default", Resource: "gpu", ID: id, Holder: "ann", Labels: ofKind(kind), TTL: 30 * time.Second, Pick: pick,
	})
	if a.Err != nil {
		tr.t.Fatal(a.Err)
	}
	// The same moment: nothing is learned that would matter here.
	apply(tr.t, tr.s, tr.at, &kernel.Change{Namespace: "default", ID: id, Holder: "bob"})
	apply(tr.t, tr.s, tr.at, &kernel.Release{Namespace: "default", ID: id})
	return a.Lease.TTL
}

func (tr *trial) at95(kind string) time.Duration {
	return tr.recent("default", kind).At(95)
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
	if got := tr.picked("train", kernel.TTLUnattended); got != 2*time.Hour {
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
		recent := tr.recent("default", "train")
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
	if got := tr.picked("new", kernel.TTLAuto); got != 2*time.Minute {
		t.Errorf("nothing is known, and the ttl is %v", got)
	}
	if got := tr.picked("new", kernel.TTLUnattended); got != 24*time.Hour {
		t.Errorf("nothing is known, and the ttl of one that nobody renews is %v", got)
	}
	for range 8 {
		tr.done("short", time.Second)
		tr.done("long", 90*time.Minute)
		tr.done("huge", 20*time.Hour)
	}
	for kind, want := range map[string]time.Duration{"short": 10 * time.Minute, "long": 3 * time.Hour, "huge": 24 * time.Hour} {
		if got := tr.picked(kind, kernel.TTLUnattended); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if got := tr.picked(kind, kernel.TTLAuto); got > 2*time.Minute || got < time.Minute {
			t.Errorf("%s: with renewals %v", kind, got)
		}
	}
	apply(t, tr.s, tr.at, &kernel.Define{Namespace: "default", Definition: leasehold.Definition{Path: "gpu", DefaultTTL: time.Minute, LargestTTL: time.Hour}})
	for kind, want := range map[string]time.Duration{"long": time.Hour, "new": time.Minute} {
		if got := tr.picked(kind, kernel.TTLUnattended); got != want {
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
		list, _ := tr.s.View(0).Alarms("default", kernel.AlarmQuery{Most: 10, Kind: leasehold.HeldLong})
		return len(list)
	}
	tr.take("long", leasehold.MaxTTL)
	tr.at += 150 * time.Minute
	apply(t, tr.s, tr.at, &kernel.Tick{})
	if n := count(); n != 0 {
		t.Errorf("%d alarms about a job that usually takes an hour, after two and a half", n)
	}
	tr.at += time.Hour
	apply(t, tr.s, tr.at, &kernel.Tick{})
	if n := count(); n != 1 {
		t.Errorf("%d alarms after three and a half hours", n)
	}
}

// TestKindsAreBounded: ten thousand kinds leave the newest 1,024 of their namespace, and nothing of another's is lost.
func TestKindsAreBounded(t *testing.T) {
	tr := newTrial(t)
	apply(t, tr.s, 0, &kernel.Acquire{Namespace: "other", Resource: "gpu", ID: "o", Holder: "ann", Labels: ofKind("o"), TTL: time.Hour})
	apply(t, tr.s, 0, &kernel.Release{Namespace: "other", ID: "o"})
	apply(t, tr.s, 0, &kernel.Define{Namespace: "other", Definition: leasehold.Definition{Path: "gpu", Grace: time.Second}}) // which keeps it
	for i := range 10000 {
		tr.done(fmt.Sprint("kind ", i), time.Second)
	}
	if n := tr.made.Count("default"); n != maxKindsOne || tr.made.Count("other") != 1 {
		t.Errorf("%d kinds", n)
	}
	if tr.recent("default", "kind 9999") == "" || tr.recent("default", fmt.Sprint("kind ", 10000-maxKindsOne)) == "" ||
		tr.recent("default", fmt.Sprint("kind ", 9999-maxKindsOne)) != "" {
		t.Error("others were forgotten than the oldest")
	}
	if tr.recent("other", "o") == "" {
		t.Error("another namespace forgot its own")
	}
	if err := tr.s.Check(); err != nil {
		t.Error(err)
	}
}

package learn

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core/internal/alarm"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/records"
	"github.com/leasehold/leasehold/internal/core/internal/reserve"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/internal/unit"
)

// stateWith returns a state that learns in some way.
func stateWith(learning kernel.Learning) *kernel.State {
	return kernel.NewAt(kernel.NewestLevel, &kernel.Subjects{
		NewAreas: area.New, NewTasks: task.New, NewPools: unit.New, NewAlarms: alarm.New, NewReservations: reserve.New,
		NewRecords: records.New, NewLearning: func() kernel.Learning { return learning },
	})
}

// TestWithoutKindsNobodyIsAsked: leases that say of no kind that they are of it are learned by the kernel alone. Whoever
// calls what learns kinds panics.
func TestWithoutKindsNobodyIsAsked(t *testing.T) {
	t.Parallel()
	s := stateWith(struct{ kernel.Learning }{})
	ask := func(id string, pick kernel.TTLPick) *kernel.Acquire {
		return &kernel.Acquire{Namespace: "default", Resource: "desk", ID: id, Holder: id, TTL: 10 * time.Second, Pick: pick, Wait: time.Minute}
	}
	for i, c := range []kernel.Command{
		ask("a", kernel.TTLAuto), ask("b", kernel.TTLUnattended), ask("c", kernel.TTLAsSaid), &kernel.Renew{Namespace: "default", ID: "b"},
		&kernel.Release{Namespace: "default", ID: "a"}, &kernel.Tick{}, &kernel.Tick{}, &kernel.Tick{}, &kernel.Tick{},
	} {
		if a := apply(t, s, time.Duration(i)*time.Second, c); a.Err != nil {
			t.Error(a.Err)
		}
	}
	apply(t, s, time.Hour, &kernel.Tick{})
	s.View(0).Status("default", "desk", 10)
	if len(s.View(0).Namespaces()) > 0 {
		apply(t, s, 2*time.Hour, &kernel.Tick{}) // which forgets the namespace
	}
}

// TestNothingIsLeftOfANamespace: what was learned in a namespace is forgotten with it.
func TestNothingIsLeftOfANamespace(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.done("train", time.Minute)
	if tr.made.Count("default") != 1 {
		t.Fatal("nothing was learned")
	}
	for range 3 {
		tr.at += time.Hour
		apply(t, tr.s, tr.at, &kernel.Tick{})
	}
	if tr.made.of.Len() != 0 || len(tr.s.View(0).Namespaces()) != 0 {
		t.Errorf("%d namespaces have learned something", tr.made.of.Len())
	}
	if err := tr.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCheckFinds damages what was learned in every way that Check is there for.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		damage func(of *table, k *Kind)
		says   string
	}{
		{func(of *table, k *Kind) { of.byName.Delete(k) }, "default: 0 kinds by name, 1 by age"},
		{func(_ *table, k *Kind) { k.order++ }, `kind "train" of "gpu" is not where it belongs`},
		{func(of *table, _ *Kind) { *of = *newTable() }, "0 kinds are known, 1 are counted"},
	} {
		tr := newTrial(t)
		tr.done("train", time.Minute)
		if err := tr.s.Check(); err != nil {
			t.Fatalf("a state that nobody has damaged: %v", err)
		}
		of := tr.made.table("default")
		_, k, _ := of.byAge.Min()
		test.damage(of, k)
		if err := tr.s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

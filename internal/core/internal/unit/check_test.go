package unit

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/alarm"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/learn"
	"github.com/leasehold/leasehold/internal/core/internal/records"
	"github.com/leasehold/leasehold/internal/core/internal/reserve"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// stateWith returns a state of which each namespace has pools that are made in some way.
func stateWith(newPools func() kernel.Pools) *kernel.State {
	return kernel.NewAt(kernel.NewestLevel, &kernel.Subjects{
		NewAreas: area.New, NewTasks: task.New, NewAlarms: alarm.New, NewReservations: reserve.New,
		NewLearning: learn.New, NewRecords: records.New, NewPools: newPools,
	})
}

// newState returns a state, and the pools of its first namespace.
func newState() (*kernel.State, *pools) {
	first := New().(*pools)
	next := kernel.Pools(first)
	return stateWith(func() kernel.Pools {
		made := next
		next = New()
		return made
	}), first
}

func apply(t *testing.T, s *kernel.State, at time.Duration, commands ...kernel.Command) {
	t.Helper()
	result, err := s.Apply(kernel.Time(time.Hour+at), int64(time.Hour+at), commands)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range result.Answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}

// TestWithoutUnitsNobodyIsAsked: the pools of a namespace without units are not called by what plain leases do, and by
// nothing that is read of them. Whoever calls these panics.
func TestWithoutUnitsNobodyIsAsked(t *testing.T) {
	t.Parallel()
	s := stateWith(func() kernel.Pools { return struct{ kernel.Pools }{} })
	lease := func(id string, slots int) *kernel.Acquire {
		return &kernel.Acquire{Namespace: "default", Resource: "desk", ID: id, Holder: id, Slots: slots, Capacity: 2 * min(slots, 1),
			TTL: 10 * time.Second, Wait: time.Minute}
	}
	apply(t, s, 0, lease("a", 0), lease("b", 0), &kernel.Renew{Namespace: "default", ID: "a"}, &kernel.Renew{Namespace: "default", ID: "b"},
		&kernel.Break{Namespace: "default", ID: "a", By: "root"}, &kernel.Change{Namespace: "default", ID: "b", Holder: "c", NewID: "c"},
		&kernel.Define{Namespace: "default", Definition: leasehold.Definition{Path: "desk", Grace: time.Second}},
		&kernel.Release{Namespace: "default", ID: "c"})
	together := lease("d", 1)
	together.Also = []kernel.Item{{Resource: "chair", ID: "e", Slots: 1, Capacity: 2}}
	apply(t, s, time.Second, together, lease("f", 1), lease("g", 2))
	apply(t, s, time.Minute, &kernel.Tick{})
	apply(t, s, time.Hour, &kernel.Tick{})
	view := s.View(0)
	view.Status("default", "desk", 10)
	view.Pools("default", "", "", 10)
	if _, ok := view.Pool("default", "desk", kernel.PoolQuery{}); ok {
		t.Error("desk is a pool")
	}
}

// TestNothingIsLeftOfAPool: when the last lease on a unit that was removed ends, the namespace has no units.
func TestNothingIsLeftOfAPool(t *testing.T) {
	t.Parallel()
	s, made := newState()
	apply(t, s, 0, &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: "h", Units: []kernel.HostUnit{{Name: "u0"}, {Name: "u1"}}},
		&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: "l", Holder: "ann", Slots: 1},
		&kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: "h"})
	if made.units.Len() != 1 {
		t.Errorf("%d units are left while one is held", made.units.Len())
	}
	apply(t, s, time.Second, &kernel.Release{Namespace: "default", ID: "l"})
	if made.units.Len() != 0 || made.Has("gpu") {
		t.Errorf("%d units are left", made.units.Len())
	}
	apply(t, s, time.Hour, &kernel.Tick{})
	apply(t, s, 2*time.Hour, &kernel.Tick{})
	if left := s.View(0).Namespaces(); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

// TestNothingIsLeftOfAQueue: when the only pool of a namespace goes while somebody waits for its units, nothing is
// remembered of its queue.
func TestNothingIsLeftOfAQueue(t *testing.T) {
	t.Parallel()
	s, made := newState()
	apply(t, s, 0, &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: "h", Units: []kernel.HostUnit{{Name: "u0"}}},
		&kernel.Drain{Namespace: "default", Resource: "gpu", Units: []string{"u0"}, Why: "dust"},
		&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: "l", Holder: "ann", Slots: 1, Wait: time.Hour},
		&kernel.Renew{Namespace: "default", ID: "l"})
	if made.quiet.Len() != 1 {
		t.Fatalf("%d queues are quiet", made.quiet.Len())
	}
	apply(t, s, time.Second, &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: "h"})
	if err := s.Check(); err != nil || made.quiet.Len() != 0 {
		t.Errorf("%d queues are quiet: %v", made.quiet.Len(), err)
	}
}

// TestCheckFinds damages pools in every way that Check is there for.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	change := func(p *pools, change func(u *pool.Unit)) {
		damaged := *p.units.Get("gpu", "u0")
		change(&damaged)
		p.units.Set(&damaged)
	}
	for _, test := range []struct {
		damage func(p *pools)
		says   string
	}{
		{func(p *pools) { p.quiet.Set("desk", 1) }, "desk is no pool, and has a queue that is quiet"},
		{func(p *pools) { change(p, func(u *pool.Unit) { u.Lease = "" }) }, `has unit "u0", which does not know`},
		{func(p *pools) { change(p, func(u *pool.Unit) { u.Lease = "m" }) }, `unit "u0" is of "m", which does not know`},
		{func(p *pools) {
			free := *p.units.Get("gpu", "u1")
			free.Removed = true
			p.units.Set(&free)
		}, `unit "u1" was removed, and is there`},
		{func(p *pools) { p.units.Set(&pool.Unit{Pool: "gpu", Host: "i", Name: "u2"}) }, "pools have 3 units, 3 are named, 2 are counted"},
	} {
		s, made := newState()
		apply(t, s, 0, &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: "h", Units: []kernel.HostUnit{{Name: "u0"}, {Name: "u1"}}},
			&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: "l", Holder: "ann", Slots: 1})
		if err := s.Check(); err != nil {
			t.Fatalf("a state that nobody has damaged: %v", err)
		}
		test.damage(made)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

package learn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// wait puts somebody in the queue for n units; 0: for all.
func (tr *trial) wait(kind string, n int) *leasehold.Waiter {
	tr.t.Helper()
	tr.n++
	a := apply(tr.t, tr.s, tr.at, &kernel.Acquire{
		Namespace: "default", Resource: "gpu", ID: fmt.Sprint("id", tr.n), Holder: "ann", Labels: ofKind(kind), TTL: time.Hour, Wait: 24 * time.Hour, Slots: n,
	})
	if a.Err != nil || a.Waiter == nil {
		tr.t.Fatalf("%+v", a)
	}
	return a.Waiter
}

// TestForecastByKind: the holder has been at it for twenty minutes of a usual hour; those who wait need five minutes and
// a day.
func TestForecastByKind(t *testing.T) {
	tr := newTrial(t)
	for i := range 20 {
		tr.done("train", time.Hour+time.Duration(i%3-1)*12*time.Minute)
		tr.done("eval", 5*time.Minute)
	}
	tr.done("export", 24*time.Hour)
	tr.done("export", 24*time.Hour)
	tr.done("export", 24*time.Hour)
	tr.take("train", leasehold.MaxTTL)
	tr.at += 20 * time.Minute
	for i, want := range []struct {
		kind     string
		turn, by time.Duration
	}{
		{"eval", 40 * time.Minute, 12 * time.Minute},
		{"export", 44 * time.Minute, 12 * time.Minute},
		{"eval", 90000 * time.Second, 12 * time.Minute},
	} {
		w := tr.wait(want.kind, 0)
		if off := w.Forecast - want.turn; off < -want.turn/10 || off > want.turn/10 || w.ForecastError != want.by {
			t.Errorf("%s, at place %d: %v ±%v, want %v ±%v", want.kind, i+1, w.Forecast, w.ForecastError, want.turn, want.by)
		}
	}
	queue := tr.s.View(0).Status("default", "gpu", 10).Queue
	if len(queue) != 3 || queue[0].ForecastError != 12*time.Minute || queue[2].Forecast < 24*time.Hour {
		t.Errorf("%+v", queue)
	}
	if held := tr.s.View(0).Held("default", "gpu"); held.ForecastError == 0 || !strings.Contains(held.Message, "(±") {
		t.Errorf("%s", held.Message)
	}
	// Longer than any of its kind ever took: nobody can tell.
	tr.at += 10 * time.Hour
	if w := tr.wait("eval", 0); w.Forecast != 0 || w.ForecastError != 0 {
		t.Errorf("%v ±%v", w.Forecast, w.ForecastError)
	}
	if held := tr.s.View(0).Held("default", "gpu"); !strings.Contains(held.Message, "held for longer than usual") {
		t.Errorf("%s", held.Message)
	}
}

// TestForecastInPool: who waits for two units on one host has its turn when the second of them is free there.
func TestForecastInPool(t *testing.T) {
	tr := newTrial(t)
	for host, units := range map[string][]kernel.HostUnit{"a": {{Name: "a1"}, {Name: "a2"}}, "b": {{Name: "b1"}}} {
		if a := apply(t, tr.s, 0, &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: host, Units: units}); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	on := func(kind, unit string) string {
		tr.n++
		id := fmt.Sprint("id", tr.n)
		a := apply(t, tr.s, tr.at, &kernel.Acquire{
			Namespace: "default", Resource: "gpu", ID: id, Holder: "ann", Labels: ofKind(kind), TTL: leasehold.MaxTTL, Slots: 1,
			Select: &leasehold.Select{Units: []string{unit}},
		})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return id
	}
	for range 3 {
		for kind, takes := range map[string]time.Duration{"short": 10 * time.Minute, "long": 2 * time.Hour} {
			id := on(kind, "a1")
			tr.at += takes
			apply(t, tr.s, tr.at, &kernel.Release{Namespace: "default", ID: id})
		}
	}
	on("short", "a1")
	on("long", "a2")
	on("short", "b1")
	if w := tr.wait("short", 2); w.Forecast != 2*time.Hour {
		t.Errorf("two on one host: %v", w.Forecast)
	}
	// The first has a1 and a2 from two hours on, and b1 is free in ten minutes.
	if w := tr.wait("long", 1); w.Forecast != 10*time.Minute {
		t.Errorf("one on any host: %v", w.Forecast)
	}
	if w := tr.wait("short", 1); w.Forecast < 125*time.Minute || w.Forecast > 135*time.Minute {
		t.Errorf("the next: %v", w.Forecast)
	}
	status, _ := tr.s.View(0).Pool("default", "gpu", kernel.PoolQuery{Most: 10, Waiters: 10})
	if len(status.Queue) != 3 || status.Queue[0].Forecast != 2*time.Hour || status.Queue[1].Forecast != 10*time.Minute {
		t.Errorf("%+v", status.Queue)
	}
	if err := tr.s.Check(); err != nil {
		t.Error(err)
	}
}

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

func ending(resource, id string) *end { return &end{ref: store.Ref{Resource: resource, ID: id}} }

func (q *ends) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.busy && len(q.waiting) == 0
}

// What comes while etcd is busy is sent together, and no key twice.
func TestEndsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps [][]string
		q := &ends{carry: func(_ context.Context, some []*end) error {
			time.Sleep(endsSlow / 2)
			var names []string
			for _, e := range some {
				names = append(names, e.ref.Resource+"="+e.ref.ID)
			}
			steps = append(steps, names)
			return nil
		}}
		var all sync.WaitGroup
		for _, e := range []*end{
			ending("a", "1"), ending("b", "2"), ending("c", "3"), ending("b", "4"), ending("d", "3"),
		} {
			all.Go(func() {
				if err := q.carryOut(t.Context(), e); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		synctest.Wait()
		if got := fmt.Sprint(steps); got != "[[a=1] [b=2 c=3] [b=4 d=3]]" || !q.idle() {
			t.Errorf("the steps are %v; idle: %v", got, q.idle())
		}
		many := make([]*end, 2*endsMany+1)
		for i := range many {
			many[i] = ending(fmt.Sprint("r", i), fmt.Sprint(i))
		}
		steps = nil
		if err := q.carryOut(t.Context(), many...); err != nil || len(steps) != 3 || len(steps[2]) != 1 {
			t.Errorf("%d ends at once: %v, %d steps", len(many), err, len(steps))
		}
		if err := q.carryOut(t.Context()); err != nil {
			t.Errorf("nothing to end: %v", err)
		}
	})
}

// A step goes on until all who wait for it have given up, and what was not sent then is not sent later.
func TestEndsAreGivenUp(t *testing.T) {
	const unit = endsSlow / 20
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		q := &ends{carry: func(ctx context.Context, some []*end) error {
			for _, e := range some {
				sent = append(sent, e.ref.ID)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * unit):
				return nil
			}
		}}
		began := time.Now()
		var all sync.WaitGroup
		ask := func(id string, patience, want time.Duration, ok bool) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := q.carryOut(ctx, ending(id, id))
				late := errors.Is(err, context.DeadlineExceeded)
				if took := time.Since(began); took != want || (err == nil) != ok || late == ok {
					t.Errorf("%s: %v after %v", id, err, took)
				}
			})
			synctest.Wait()
		}
		ask("alone", 2*unit, 2*unit, false)
		ask("never sent", unit, unit, false)
		ask("gone", 4*unit, 4*unit, false)
		ask("stays", time.Hour, 12*unit, true)
		all.Wait()
		if !slices.Equal(sent, []string{"alone", "gone", "stays"}) {
			t.Errorf("sent was %v", sent)
		}
	})
}

// A step that hangs is in nobody else's way for long.
func TestEndsPassASlowStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		q := &ends{carry: func(_ context.Context, some []*end) error {
			if some[0].ref.ID == "slow" {
				<-hang
			}
			return nil
		}}
		began := time.Now()
		var slow sync.WaitGroup
		slow.Go(func() { _ = q.carryOut(t.Context(), ending("r", "slow")) })
		synctest.Wait()
		for i, want := range []time.Duration{endsSlow, endsSlow} {
			id := fmt.Sprint(i)
			if err := q.carryOut(t.Context(), ending(id, id)); err != nil || time.Since(began) != want {
				t.Errorf("%d: %v after %v", i, err, time.Since(began))
			}
		}
		close(hang)
		slow.Wait()
		synctest.Wait()
		if !q.idle() {
			t.Error("it is not idle afterwards")
		}
	})
}

// One of many callers asks for the next lease of marks, and the others do not wait for it.
func TestOneCallerAsksForTheNextLeaseOfMarks(t *testing.T) {
	m := newMarks(nil)
	if m.use(markUnit) != 0 {
		t.Error("there is a lease before there is one")
	}
	m.current[markUnit] = &rolling{id: 7, since: time.Now()}
	asked := 0
	for range 2*markMany + 1 {
		if m.use(markUnit) == 0 {
			asked++
		}
	}
	if asked != 1 || m.use(markUnit) != 0 {
		t.Errorf("%d asked for the next lease; used %d", asked, m.current[markUnit].used)
	}
	m.current[markUnit] = &rolling{id: 7, since: time.Now().Add(-markRoll - time.Second)}
	if m.use(markUnit) != 0 || m.use(markUnit) != 7 {
		t.Error("an old lease is not replaced by the first who uses it")
	}
}

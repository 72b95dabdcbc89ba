//go:build linux

package workload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/load"
)

// atOnce does something n times, with a number of goroutines. It stops at an error.
func atOnce(n, goroutines int, do func(i int) error) error {
	var (
		next   atomic.Int64
		failed atomic.Bool
		all    sync.WaitGroup
		errs   = make([]error, min(n, goroutines))
	)
	for g := range errs {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && !failed.Load(); i = next.Add(1) - 1 {
				if errs[g] = do(int(i)); errs[g] != nil {
					failed.Store(true)
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// A step is what a worker does again and again. It returns how long what counts took.
type step func(ctx context.Context) (time.Duration, error)

// timed makes a step of something that counts as a whole.
func timed(do func(ctx context.Context) error) step {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := do(ctx)
		return time.Since(began), err
	}
}

// A window is the measured part of a loop.
type window struct {
	measured, stopped atomic.Bool // it has begun; it is over
	took              time.Duration
	counts            []int64 // of each worker
	times             load.Histogram
	serverCPU, ownCPU time.Duration
	allocs            float64
}

// measure has workers do their steps for a while, each in a closed loop. An error ends it.
func (t *Trial) measure(ctx context.Context, steps []step) (*window, error) {
	w := &window{counts: make([]int64, len(steps))}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(steps))
	var (
		all sync.WaitGroup
		mu  sync.Mutex
	)
	for i, do := range steps {
		all.Go(func() {
			var own load.Histogram
			for !w.stopped.Load() && ctx.Err() == nil {
				took, err := do(ctx)
				if err != nil {
					errs[i] = err
					cancel()
					return
				}
				// What is answered in the window counts, also if it began before: as much ends after it.
				if w.measured.Load() && !w.stopped.Load() {
					own.Add(took)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			w.counts[i] = int64(own.Count())
			w.times.Merge(&own)
		})
	}
	err := t.watchWindow(ctx, w)
	all.Wait()
	for _, e := range errs {
		if e != nil && !errors.Is(e, context.Canceled) {
			return nil, e
		}
	}
	return w, err
}

// watchWindow opens and closes the window, and takes what was used meanwhile.
func (t *Trial) watchWindow(ctx context.Context, w *window) error {
	sleep(ctx, t.Size.WarmUp)
	before, look, err := t.allocs(ctx)
	if err != nil {
		return err
	}
	pids := t.Server.Pids()
	cpu, own := stage.CPU(pids), stage.OwnCPU()
	began := time.Now()
	w.measured.Store(true)
	sleep(ctx, t.Size.Time)
	w.stopped.Store(true)
	w.took = time.Since(began)
	w.serverCPU, w.ownCPU = stage.CPU(pids)-cpu, stage.OwnCPU()-own
	if ctx.Err() != nil {
		return nil // a worker says why
	}
	if t.Server.Allocs != nil {
		after, err := t.Server.Allocs(ctx)
		if err != nil {
			return err
		}
		w.allocs = after - before - look
	}
	return nil
}

// allocs returns how much the server has allocated, and how much it allocates for being asked that.
func (t *Trial) allocs(ctx context.Context) (now, look float64, err error) {
	if t.Server.Allocs == nil || ctx.Err() != nil {
		return 0, 0, nil
	}
	first, err := t.Server.Allocs(ctx)
	if err != nil {
		return 0, 0, err
	}
	now, err = t.Server.Allocs(ctx)
	return now, now - first, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// count returns how often something was done.
func (w *window) count() (n int64) {
	for _, c := range w.counts {
		n += c
	}
	return n
}

// metrics returns the figures that every rate has.
func (w *window) metrics() report.Metrics {
	n := float64(w.count())
	m := report.Metrics{
		"rate": n / w.took.Seconds(), "p50": ms(w.times.Quantile(0.5)), "p99": ms(w.times.Quantile(0.99)),
	}
	if n == 0 {
		return m // nothing is known of what one costs
	}
	m["server"], m["client"] = float64(w.serverCPU.Microseconds())/n, float64(w.ownCPU.Microseconds())/n
	if w.allocs > 0 {
		m["allocs"] = w.allocs / n
	}
	return m
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

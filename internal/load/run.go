package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pause is how long a client rests after an error. Without it, clients that fail at once would
// count millions of errors while a server is gone, and keep it from coming back.
const pause = 100 * time.Millisecond

// A run is one operation being measured. Only what begins between from and until counts, so that
// neither the warm-up nor the slow end distorts the figures.
type run struct {
	config    Config
	operation string
	leases    int
	ctx       context.Context // goes on after the run was ended
	workers   []worker
	tallies   []*tally
	stop      chan struct{} // closed when nothing new begins

	done    atomic.Int64 // leases acquired, then released
	mu      sync.Mutex
	phase   Phase
	from    time.Time // what began before it is not counted
	until   time.Time // nor what began after it; zero: not over yet
	first   error
	left    int
	aborted bool // there is nothing to measure
}

func (r *run) enter(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = p
	r.done.Store(0)
}

// each lets all workers do something at once.
func (r *run) each(do func(i int, w worker)) {
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() { do(i, w) })
	}
	all.Wait()
}

// prepare acquires what the operation needs. It ends at the first error: a measurement with fewer
// leases than were asked for would be another measurement.
func (r *run) prepare(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.each(func(i int, w worker) {
		if err := w.prepare(ctx); err != nil {
			r.fail(i, err)
			cancel()
		}
	})
	r.aborted = ctx.Err() != nil
}

// measure lets the workers go until the time is over.
func (r *run) measure(ctx context.Context) {
	if r.aborted {
		return
	}
	r.enter(WarmingUp)
	r.setWindow(time.Now().Add(r.config.WarmUp))
	ctx, finish := context.WithCancel(ctx)
	// Requests do not end with the run's context: those that are under way at the end are often the
	// slowest, and have to be counted.
	requests, cancel := context.WithCancel(r.ctx)
	defer cancel()
	var timer sync.WaitGroup
	timer.Go(func() {
		if wait(ctx.Done(), r.config.WarmUp) {
			r.enter(Measuring)
			wait(ctx.Done(), r.config.Duration)
		}
		r.end()
	})
	timer.Go(func() {
		<-r.stop
		if wait(requests.Done(), r.grace()) {
			cancel() // the rest will not be answered
		}
	})
	r.each(func(i int, w worker) { r.loop(requests, i, w) })
	finish() // if they had nothing left to do before the time was over
	cancel()
	timer.Wait()
}

// grace returns how long requests may take that were under way when the time was over. It grows
// with the clients, because a queue is emptied by its waiters, one after the other.
func (r *run) grace() time.Duration {
	return 10*time.Second + time.Duration(len(r.workers))*10*time.Millisecond
}

// wait reports whether the time passed before the channel was closed.
func wait(closed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-closed:
		return false
	}
}

func (r *run) setWindow(from time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = from
}

// end closes the window. What began in it still counts when it is answered: leaving it out would
// leave out the slowest.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Now()
	close(r.stop)
}

func (r *run) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

func (r *run) loop(ctx context.Context, i int, w worker) {
	for !r.stopped() {
		s, err := w.step(ctx)
		switch {
		case err == errIdle:
			return
		case err != nil:
			r.fail(i, err)
			wait(r.stop, pause)
		case r.counts(s):
			t := r.tallies[i]
			t.mu.Lock()
			t.times.Add(s.took)
			t.mu.Unlock()
		}
	}
}

func (r *run) counts(s sample) bool {
	if s.began.IsZero() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !s.began.Before(r.from) && (r.until.IsZero() || s.began.Before(r.until))
}

// fail counts an error, also one during the warm-up: it is no less an error there.
func (r *run) fail(i int, err error) {
	t := r.tallies[i]
	t.mu.Lock()
	t.errors++
	t.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = err
	}
}

// clear releases what was acquired. It may take as long as the leases would last anyway.
func (r *run) clear() {
	r.enter(Releasing)
	ctx, cancel := context.WithTimeout(r.ctx, ttl+time.Duration(r.leases)*time.Millisecond)
	defer cancel()
	r.each(func(_ int, w worker) {
		left := w.clear(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left += left
	})
}

// figures returns the figures of all clients so far, and how long has been measured. Each client
// counts for itself, so that the clients do not wait for each other's lock.
func (r *run) figures() (Figures, time.Duration) {
	var all Histogram
	var errors uint64
	for _, t := range r.tallies {
		t.mu.Lock()
		all.Merge(&t.times)
		errors += t.errors
		t.mu.Unlock()
	}
	measured := r.measured()
	f := figuresOf(&all, measured)
	f.Errors = errors
	return f, measured
}

func figuresOf(all *Histogram, measured time.Duration) (f Figures) {
	f.Count, f.Max = all.Count(), all.Max()
	if measured > 0 {
		f.Rate = float64(f.Count) / measured.Seconds()
	}
	f.P50, f.P90, f.P99, f.P999 = all.Quantile(0.5), all.Quantile(0.9), all.Quantile(0.99), all.Quantile(0.999)
	return f
}

func (r *run) measured() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.from.IsZero():
		return 0
	case r.until.IsZero():
		return max(0, time.Since(r.from))
	}
	return max(0, r.until.Sub(r.from))
}

func (r *run) result() Result {
	figures, measured := r.figures()
	return Result{
		Operation: r.operation, Leases: r.leases, Measured: measured, Figures: figures, First: r.first, Left: r.left,
	}
}

// reportProgress reports progress at intervals, until the returned function is called.
func (c Config) reportProgress(progress func() Progress) (stop func()) {
	if c.Progress == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for wait(ended, c.Every) {
			c.Progress(progress())
		}
	})
	return func() {
		close(ended)
		telling.Wait()
	}
}

func (r *run) progress() Progress {
	figures, measured := r.figures()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Progress{
		Operation: r.operation, Phase: r.phase, Elapsed: measured, Done: int(r.done.Load()), Of: r.leases,
		Figures: figures,
	}
}

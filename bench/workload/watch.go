//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/internal/load"
)

// watches tells many watchers of the same events, which come at a rate of their own, and measures how
// long each event takes, from the moment that it is due, to each of them.
func watches(ctx context.Context, t *Trial) (report.Metrics, error) {
	n, events := t.Size.Watchers, max(1, int(2*t.Size.Time.Seconds()*float64(t.Size.Events)))
	clients, err := t.dial(ctx, n+1, system.Dialing{})
	if err != nil {
		return nil, err
	}
	publisher, err := as[system.Watcher](clients[n])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &audience{due: make([]atomic.Int64, events), epoch: time.Now()}
	var all, ready sync.WaitGroup
	ready.Add(n)
	for _, c := range clients[:n] {
		w, _ := as[system.Watcher](c)
		all.Go(func() { a.watch(ctx, w, ready.Done) })
	}
	if !waitFor(&ready, t.Size.Patience) {
		return nil, errors.Join(fmt.Errorf("not all watches had begun after %v", t.Size.Patience), a.failure())
	}
	if err := publisher.Publish(ctx, "first"); err != nil { // what it opens once is no part of an event
		return nil, err
	}
	cpu, own, began := stage.CPU(t.Server.Pids()), stage.OwnCPU(), time.Now()
	for i := range events {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(t.Size.Events))
		sleep(ctx, time.Until(due))
		a.due[i].Store(int64(due.Sub(a.epoch)))
		if err := publisher.Publish(ctx, watched); err != nil {
			return nil, err
		}
	}
	want := int64(n * events)
	for until := time.Now().Add(t.Size.Patience); a.seen.Load() < want && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(began)
	used, usedOwn := stage.CPU(t.Server.Pids())-cpu, stage.OwnCPU()-own
	cancel()
	t.closeClients()
	all.Wait()
	got := float64(a.seen.Load())
	return report.Metrics{
		"p50": ms(a.times.Quantile(0.5)), "p99": ms(a.times.Quantile(0.99)), "max": ms(a.times.Max()),
		"rate": got / took.Seconds(), "lost": float64(want) - got,
		"server": float64(used.Microseconds()) / got, "client": float64(usedOwn.Microseconds()) / got,
	}, a.failure()
}

// watched is what everybody watches.
const watched = "watched"

// waitFor reports whether a group was done in time.
func waitFor(all *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// An audience is all watchers.
type audience struct {
	epoch time.Time
	due   []atomic.Int64 // of each event, since epoch
	seen  atomic.Int64

	mu     sync.Mutex
	times  load.Histogram
	failed error
}

func (a *audience) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// watch is one watcher.
func (a *audience) watch(ctx context.Context, w system.Watcher, ready func()) {
	var (
		own   load.Histogram
		begun sync.Once
		next  int
	)
	err := w.Watch(ctx, watched, func() { begun.Do(ready) }, func() {
		if next < len(a.due) {
			own.Add(time.Since(a.epoch) - time.Duration(a.due[next].Load()))
			a.seen.Add(1)
		}
		next++
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times.Merge(&own)
	if err != nil && ctx.Err() == nil {
		a.failed = err
	}
}

//go:build linux

package workload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/internal/load"
)

// waiters puts very many into one queue, and measures how fast they get their turns.
func waiters(ctx context.Context, t *Trial) (report.Metrics, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const each = 100
	n := t.Size.Waiters
	all, err := t.dial(ctx, max(1, n/each), system.Dialing{Users: 10})
	if err != nil {
		return nil, err
	}
	one, err := t.dial(ctx, 1, system.Dialing{Index: len(all)})
	if err != nil {
		return nil, err
	}
	holder, err := one[0].Acquire(ctx, system.Request{Name: "queue", TTL: ttl, Wait: true})
	if err != nil {
		return nil, err
	}
	before, began := t.resident(), time.Now()
	q := &queue{epoch: began}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { q.wait(ctx, all[i%len(all)]) })
		if i%each == each-1 { // 2,000 a second; etcd refuses more
			sleep(ctx, 50*time.Millisecond)
		}
	}
	t.quiet(ctx)
	m := report.Metrics{"queued": time.Since(began).Seconds(), "memory": t.resident() - before}
	t.Say("%d are waiting", n)
	from := time.Now()
	q.release()
	if err := holder.Release(ctx); err != nil {
		return nil, err
	}
	for q.served.Load() < int64(n) && time.Since(from) < 2*t.Size.Time && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	m["rate"] = float64(q.served.Load()) / time.Since(from).Seconds()
	cancel()
	t.closeClients() // some do not end with their context
	wg.Wait()
	m["p50"], m["p99"] = ms(q.gaps.Quantile(0.5)), ms(q.gaps.Quantile(0.99))
	if err := q.failed.Load(); err != nil && q.served.Load() == 0 {
		return nil, *err
	}
	return m, nil
}

// quiet waits until the server has little to do, but not for ever: some systems ask again and again.
func (t *Trial) quiet(ctx context.Context) {
	const look = 250 * time.Millisecond
	for until := time.Now().Add(t.Size.Patience); time.Now().Before(until) && ctx.Err() == nil; {
		before := stage.CPU(t.Server.Pids()) + stage.OwnCPU()
		sleep(ctx, look)
		if stage.CPU(t.Server.Pids())+stage.OwnCPU()-before < look/5 {
			return
		}
	}
	t.note = fmt.Sprintf("it was still busy with them after %v", t.Size.Patience)
}

// A queue counts who had a turn.
type queue struct {
	epoch    time.Time
	released atomic.Int64 // since epoch
	served   atomic.Int64
	failed   atomic.Pointer[error]

	mu   sync.Mutex
	gaps load.Histogram
}

func (q *queue) release() { q.released.Store(int64(time.Since(q.epoch))) }

// wait waits for one turn.
func (q *queue) wait(ctx context.Context, c system.Client) {
	h, err := c.Acquire(ctx, system.Request{Name: "queue", TTL: ttl, Wait: true})
	if err != nil {
		if ctx.Err() == nil {
			q.failed.CompareAndSwap(nil, &err)
		}
		return
	}
	gap := time.Since(q.epoch) - time.Duration(q.released.Load())
	q.release()
	if h.Release(ctx) == nil {
		q.served.Add(1)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gaps.Add(gap)
}

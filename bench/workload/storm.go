//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/internal/load"
)

// stormPatience is how many times as long as for other things is waited for the end of the last lease: etcd ends about
// a thousand a second.
const stormPatience = 12

// fillers is how many clients acquire leases when there have to be many.
const fillers = 16

// fill acquires the leases of a range of numbers. Each client takes one part after another.
func (t *Trial) fill(ctx context.Context, clients []system.Client, from, to int, until time.Time) error {
	const part = 2048
	var taken, done atomic.Int64
	return atOnce(len(clients), len(clients), func(i int) error {
		able, err := as[system.Filler](clients[i])
		for err == nil {
			first := from + int(taken.Add(part)-part)
			if first >= to {
				return nil
			}
			err = able.Fill(ctx, system.FillPrefix, first, min(to, first+part), until)
			if n := done.Add(part); n%(32*part) == 0 {
				t.Say("%d of %d leases", int64(from)+n, to)
			}
		}
		return err
	})
}

// storm lets many leases end in the same second. It measures when the server has none of them any more,
// and how long others have to wait meanwhile, who only renew theirs.
func storm(ctx context.Context, t *Trial) (report.Metrics, error) {
	if t.Server.Count == nil || strings.HasPrefix(t.System.Name, "zookeeper") {
		return nil, ErrCannot
	}
	clients, err := t.dial(ctx, fillers, system.Dialing{})
	if err != nil {
		return nil, err
	}
	others, err := t.dial(ctx, 8, system.Dialing{TTL: 10 * time.Minute})
	if err != nil {
		return nil, err
	}
	// A small part shows how long all of it will take.
	pilot, began := min(t.Size.Storm/10, 4096), time.Now()
	if err := t.fill(ctx, clients, 0, pilot, began.Add(10*time.Minute)); err != nil {
		return nil, err
	}
	takes := time.Duration(float64(time.Since(began)) * float64(t.Size.Storm) / float64(pilot))
	if takes > 5*t.Size.Patience {
		return nil, fmt.Errorf("to acquire the leases would take %v", takes.Round(time.Second))
	}
	end := time.Now().Add(2*takes + 3*time.Second).Truncate(time.Second).Add(time.Second)
	if err := t.fill(ctx, clients, pilot, pilot+t.Size.Storm, end); err != nil {
		return nil, err
	}
	if late := time.Since(end); late > -time.Second {
		return nil, fmt.Errorf("the leases could not be acquired in %v", 2*takes)
	}
	holds := make([]system.Hold, len(others))
	for i, c := range others {
		r := system.Request{Name: fmt.Sprint("other/", i), TTL: 10 * time.Minute, ByHand: true}
		if holds[i], err = c.Acquire(ctx, r); err != nil {
			return nil, err
		}
	}
	count := t.Server.Count
	if c, ok := clients[0].(system.Counter); ok {
		count = c.Count
	}
	return t.endStorm(ctx, holds, end, count)
}

// endStorm waits for the end of the leases.
func (t *Trial) endStorm(
	ctx context.Context, holds []system.Hold, end time.Time, count func(context.Context) (int, error),
) (report.Metrics, error) {
	sleep(ctx, time.Until(end.Add(-time.Second)))
	before, err := count(ctx)
	if err != nil {
		return nil, err
	}
	left := before - t.Size.Storm // is what stays
	if left < 0 {
		return nil, fmt.Errorf("there are only %d leases", before)
	}
	sleep(ctx, time.Until(end))
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	others := make(chan load.Histogram)
	go func() { others <- renewAll(renewing, holds) }()
	due := end
	switch {
	case strings.HasPrefix(t.System.Name, "etcd"):
		due = end.Add(time.Second) // its TTLs are whole seconds, rounded up
	case t.System.Name == "leasehold-etcd":
		due = end.Add(2 * time.Second) // and the door adds one, because its clients begin to count late
	}
	now := before
	for now > left && time.Since(due) < stormPatience*t.Size.Patience && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		if now, err = count(ctx); err != nil {
			return nil, err
		}
	}
	late := time.Since(due)
	if late < time.Second {
		sleep(ctx, time.Second-late)
	}
	stop()
	times := <-others
	if now > left {
		t.note = fmt.Sprintf("%d leases were still there after %v", now-left, late.Round(time.Second))
	}
	return report.Metrics{
		"late": ms(late), "p50": ms(times.Quantile(0.5)), "p99": ms(times.Quantile(0.99)), "max": ms(times.Max()),
	}, nil
}

// renewAll renews leases all the time, each by a goroutine of its own.
func renewAll(ctx context.Context, holds []system.Hold) (all load.Histogram) {
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for _, h := range holds {
		wg.Go(func() {
			var own load.Histogram
			for ctx.Err() == nil {
				began := time.Now()
				if err := h.Renew(ctx); err == nil || !errors.Is(err, context.Canceled) {
					own.Add(time.Since(began))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.Merge(&own)
		})
	}
	wg.Wait()
	return all
}

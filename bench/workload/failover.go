//go:build linux

package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/internal/load"
)

// failover kills the leader while clients acquire and release, and measures for how long each of them
// has no success.
func failover(ctx context.Context, t *Trial) (report.Metrics, error) {
	clients, err := t.dial(ctx, t.Size.Clients, system.Dialing{})
	if err != nil {
		return nil, err
	}
	lead := max(time.Second, t.Size.Time)
	ctx, cancel := context.WithTimeout(ctx, lead+lead/2+t.Size.Patience/2)
	defer cancel()
	var all sync.WaitGroup
	outages := make([]outage, len(clients))
	for i, c := range clients {
		all.Go(func() { outages[i].cycle(ctx, c, i) })
	}
	sleep(ctx, lead)
	killed := time.Now()
	t.Server.Leader().Kill()
	<-ctx.Done()
	t.closeClients() // some do not end with their context
	all.Wait()
	var times load.Histogram
	ended, before, after := time.Now(), 0, 0
	for i := range outages {
		o := &outages[i]
		before += o.before(killed)
		after += len(o.successes) - o.before(killed)
		times.Add(o.longest(killed, ended))
	}
	if after == 0 {
		waited := ended.Sub(killed).Round(time.Second)
		return nil, fmt.Errorf("nothing succeeded in %v after the leader was killed", waited)
	}
	return report.Metrics{
		"p50": ms(times.Quantile(0.5)), "max": ms(times.Max()),
		"before": float64(before) / lead.Seconds(), "after": float64(after) / ended.Sub(killed).Seconds(),
	}, nil
}

// An outage is what one client meets.
type outage struct{ successes []time.Time }

// cycle acquires and releases as in other workloads, but goes on after an error.
func (o *outage) cycle(ctx context.Context, c system.Client, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		err := try(ctx, c, system.Request{Name: fmt.Sprintf("cycle/%d/%d", i, n%ownNames), TTL: ttl})
		if err != nil {
			sleep(ctx, 10*time.Millisecond)
			continue
		}
		o.successes = append(o.successes, time.Now())
	}
}

func try(ctx context.Context, c system.Client, r system.Request) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a dead server must not be waited for
	defer cancel()
	h, err := c.Acquire(ctx, r)
	if err != nil {
		return err
	}
	return h.Release(ctx)
}

// before counts the successes until a time.
func (o *outage) before(at time.Time) (n int) {
	for _, s := range o.successes {
		if s.Before(at) {
			n++
		}
	}
	return n
}

// longest returns the longest time without a success from a time on.
func (o *outage) longest(from, to time.Time) (most time.Duration) {
	last := from
	for _, s := range append(o.successes, to) {
		if s.After(from) {
			most, last = max(most, s.Sub(last)), s
		}
	}
	return most
}

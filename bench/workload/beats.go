//go:build linux

package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
)

// heartbeats has clients renew at a rate that is given, as the nodes of a large cluster do. What counts is how long one
// takes from the moment when it was due: a client that is late with one is late with the next.
func heartbeats(ctx context.Context, t *Trial) (report.Metrics, error) {
	clients, err := t.dial(ctx, t.Size.Clients, system.Dialing{TTL: ttl})
	if err != nil {
		return nil, err
	}
	every := time.Second * time.Duration(len(clients)) / time.Duration(t.Size.Beats)
	steps := make([]step, len(clients))
	holds := make([]system.Hold, len(clients))
	defer func() {
		for _, h := range holds {
			if h != nil {
				_ = h.Release(context.WithoutCancel(ctx))
			}
		}
	}()
	err = atOnce(len(clients), 16, func(i int) (err error) {
		r := system.Request{Name: fmt.Sprintf("beat/%s/%d", t.System.Name, i), TTL: ttl, ByHand: true}
		if holds[i], err = clients[i].Acquire(ctx, r); err != nil {
			return err
		}
		due := time.Now().Add(every * time.Duration(i) / time.Duration(len(clients)))
		steps[i] = func(ctx context.Context) (time.Duration, error) {
			due = due.Add(every)
			sleep(ctx, time.Until(due))
			err := holds[i].Renew(ctx)
			return time.Since(due), err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	w, err := t.measure(ctx, steps)
	if err != nil {
		return nil, err
	}
	m := w.metrics()
	m["max"] = ms(w.times.Max())
	return m, nil
}

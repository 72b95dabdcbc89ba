//go:build linux

package workload

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
)

// ownNames is how many resources each worker takes in turn. ZooKeeper's library makes a node for each,
// which stays; and rueidislock's still releases one while the next is acquired.
const ownNames = 16

// cycles has each of a number of clients acquire and release leases of its own.
func cycles(clients func(Size) int) func(context.Context, *Trial) (report.Metrics, error) {
	return func(ctx context.Context, t *Trial) (report.Metrics, error) {
		all, err := t.dial(ctx, clients(t.Size), system.Dialing{})
		if err != nil {
			return nil, err
		}
		return t.cycle(ctx, all)
	}
}

// sharedCycles has many goroutines do it with one client.
func sharedCycles(ctx context.Context, t *Trial) (report.Metrics, error) {
	all, err := t.share(ctx)
	if err != nil {
		return nil, err
	}
	return t.cycle(ctx, all)
}

// share connects one client, and returns it once for each of its users.
func (t *Trial) share(ctx context.Context) ([]system.Client, error) {
	one, err := t.dial(ctx, 1, system.Dialing{Users: t.Size.Clients})
	return slices.Repeat(one, t.Size.Clients), err
}

func (t *Trial) cycle(ctx context.Context, clients []system.Client) (report.Metrics, error) {
	var steps []step
	for i, c := range clients {
		n := 0
		steps = append(steps, timed(func(ctx context.Context) error {
			n = (n + 1) % ownNames
			h, err := c.Acquire(ctx, system.Request{Name: fmt.Sprintf("cycle/%d/%d", i, n), TTL: ttl})
			if err != nil {
				return err
			}
			return h.Release(ctx)
		}))
	}
	return t.rate(ctx, steps)
}

// rate has all steps repeated for the time of a measurement, and returns how often that was.
func (t *Trial) rate(ctx context.Context, steps []step) (report.Metrics, error) {
	w, err := t.measure(ctx, steps)
	if err != nil {
		return nil, err
	}
	return w.metrics(), nil
}

// renewals has each client renew a lease of its own.
func renewals(ctx context.Context, t *Trial) (report.Metrics, error) {
	all, err := t.dial(ctx, t.Size.Clients, system.Dialing{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return t.renew(ctx, all)
}

func sharedRenewals(ctx context.Context, t *Trial) (report.Metrics, error) {
	all, err := t.share(ctx)
	if err != nil {
		return nil, err
	}
	return t.renew(ctx, all)
}

func (t *Trial) renew(ctx context.Context, clients []system.Client) (report.Metrics, error) {
	steps := make([]step, len(clients))
	holds := make([]system.Hold, len(clients))
	defer func() { // others use the names later
		_ = atOnce(len(holds), 16, func(i int) error {
			if holds[i] != nil {
				_ = holds[i].Release(context.WithoutCancel(ctx))
			}
			return nil
		})
	}()
	err := atOnce(len(clients), 16, func(i int) (err error) {
		name := fmt.Sprintf("renew/%s/%d", t.System.Name, i) // keys of Consul stay, and are seen through other doors
		r := system.Request{Name: name, TTL: ttl, ByHand: true}
		holds[i], err = clients[i].Acquire(ctx, r)
		if err == nil {
			steps[i] = timed(holds[i].Renew)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.rate(ctx, steps)
}

// groupRenewals has each client renew a session that holds a number of leases.
func groupRenewals(leases func(Size) int) func(context.Context, *Trial) (report.Metrics, error) {
	return func(ctx context.Context, t *Trial) (report.Metrics, error) { return t.renewGroups(ctx, leases(t.Size)) }
}

// renewGroups renews many leases by one request each time, as a session does.
func (t *Trial) renewGroups(ctx context.Context, leases int) (report.Metrics, error) {
	clients, err := t.dial(ctx, t.Size.Clients, system.Dialing{TTL: ttl})
	if err != nil {
		return nil, err
	}
	steps := make([]step, len(clients))
	groups := make([]system.Group, len(clients))
	defer func() {
		for _, g := range groups {
			if g != nil {
				_ = g.Close(context.WithoutCancel(ctx))
			}
		}
	}()
	err = atOnce(len(clients), 8, func(i int) error {
		able, err := as[system.Grouper](clients[i])
		if err != nil {
			return err
		}
		var names []string
		for n := range leases {
			names = append(names, fmt.Sprintf("group/%d/%d", i, n))
		}
		if groups[i], err = able.Group(ctx, ttl, names); err == nil {
			steps[i] = timed(groups[i].Renew)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	w, err := t.measure(ctx, steps)
	if err != nil {
		return nil, err
	}
	m := w.metrics()
	m["leases"] = m["rate"] * float64(leases)
	return m, nil
}

// handOvers has clients wait for one lease, release it as soon as they have it, and wait for it again.
// A hand-over lasts from the moment that the release is sent to the moment that the next one knows.
func handOvers(ctx context.Context, t *Trial) (report.Metrics, error) {
	clients, err := t.dial(ctx, t.Size.Takers, system.Dialing{})
	if err != nil {
		return nil, err
	}
	var (
		steps    []step
		released atomic.Int64
		epoch    = time.Now()
	)
	for _, c := range clients {
		steps = append(steps, func(ctx context.Context) (time.Duration, error) {
			h, err := c.Acquire(ctx, system.Request{Name: "handover", TTL: ttl, Wait: true})
			if err != nil {
				return 0, err
			}
			gap := time.Since(epoch) - time.Duration(released.Load())
			released.Store(int64(time.Since(epoch)))
			return gap, h.Release(ctx)
		})
	}
	w, err := t.measure(ctx, steps)
	if err != nil {
		return nil, err
	}
	m := w.metrics()
	m["least"], m["most"] = float64(slices.Min(w.counts)), float64(slices.Max(w.counts))
	return m, nil
}

//go:build linux

package workload

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
	"github.com/leasehold/leasehold/internal/load"
)

// takeOvers kills a process that holds leases, for each of which somebody waits, and measures how much
// later than its TTL each is granted to the next.
func takeOvers(ctx context.Context, t *Trial) (report.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*t.Size.TTL+t.Size.Patience)
	defer cancel()
	waiting, err := t.dial(ctx, min(8, t.Size.Dead), system.Dialing{Users: t.Size.Dead, TTL: t.Size.TTL})
	if err != nil {
		return nil, err
	}
	o := order{System: t.System.Name, Addresses: t.Server.Addresses, TTL: t.Size.TTL, Every: 5 * time.Millisecond}
	for range t.Size.Dead {
		o.Names = append(o.Names, system.NewName("takeover/"))
	}
	var (
		all     sync.WaitGroup
		granted = make([]time.Time, len(o.Names))
		errs    = make([]error, len(o.Names))
	)
	holder, asked, err := t.startHolder(o, func(i int) {
		all.Go(func() {
			var h system.Hold
			h, errs[i] = waiting[i%len(waiting)].Acquire(ctx, system.Request{Name: o.Names[i], TTL: ttl, Wait: true})
			if granted[i] = time.Now(); errs[i] == nil {
				errs[i] = h.Release(ctx)
			}
		})
	})
	if holder != nil {
		time.Sleep(100 * time.Millisecond) // the last waiter is in its queue, too
		holder.End(syscall.SIGKILL)
	}
	if err != nil {
		cancel()
		all.Wait()
		return nil, err
	}
	all.Wait()
	return t.lateness(asked, granted, errs)
}

// lateness works out how late the grants were.
func (t *Trial) lateness(asked, granted []time.Time, errs []error) (report.Metrics, error) {
	var late load.Histogram
	for i := range granted {
		if errs[i] != nil {
			return nil, fmt.Errorf("lease %d was not taken over: %w", i, errs[i])
		}
		due := asked[i].Add(t.Size.TTL)
		if strings.HasPrefix(t.System.Name, "zookeeper") { // all of them are in one session
			due = asked[len(asked)-1].Add(t.Size.TTL)
		}
		late.Add(granted[i].Sub(due))
	}
	return report.Metrics{
		"p50": ms(late.Quantile(0.5)), "p99": ms(late.Quantile(0.99)), "max": ms(late.Max()),
	}, nil
}

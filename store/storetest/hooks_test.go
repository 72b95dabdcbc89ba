package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A store in virtual time has no clock to set and no standby. Here a clock that steps forward is time that
// passes, and one that steps back, or a failover, changes what a faulty store does from then on.

// hooked returns a configuration whose store has a fault once something was done to it.
func hooked(wrong func(*faulty, context.Context, store.Request) (store.Grant, error)) Config {
	var hit atomic.Bool
	c := brokenConfig(fault{acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
		if hit.Load() && wrong != nil {
			return wrong(b, ctx, r)
		}
		return b.Store.Acquire(ctx, r)
	}})
	c.Clock = func(testing.TB) Clock {
		return Clock{Open: c.Open, Step: func(by time.Duration) {
			time.Sleep(max(0, by))
			hit.Store(by < 0)
		}}
	}
	c.Standby = func(testing.TB) Standby {
		return Standby{Open: c.Open, Lag: func() {}, Promote: func() { hit.Store(true) }}
	}
	return c
}

func TestClocksAndStandbys(t *testing.T) {
	type acquire = func(*faulty, context.Context, store.Request) (store.Grant, error)
	adds := func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
		g, err := b.Store.Acquire(ctx, r)
		g.Remaining += time.Hour
		return g, err
	}
	forgets := func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
		return b.as(ctx, r, func(r *store.Request) { r.Resource, r.ID = "another "+r.Resource, "another "+r.ID })
	}
	for _, one := range tests() {
		for name, test := range map[string]struct {
			wrong acquire
			by    string // the case that must find it; empty: none
		}{
			"nothing": {}, "a clock that adds": {adds, "clock/steps"}, "a standby that forgets": {forgets, "faults/fail over"},
		} {
			if one.name != test.by && (test.by != "" || !one.own) {
				continue
			}
			t.Run(name+"/"+one.name, func(t *testing.T) {
				if r := failures(t, hooked(test.wrong), one); r.failed() != (test.by != "") {
					t.Errorf("found %q", r.failures)
				}
			})
		}
	}
}

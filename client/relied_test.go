package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// changes is the one verb after which the lease goes on, under a token that nobody knows if the reply is lost.
const changes = "change"

// Whatever ends a lease gives up the hold before the server is asked, and although no reply ever comes: the server may
// give the resource to others at once, and a renewal does not tell a session what it did itself.
func TestNothingIsReliedOnThatMayHaveEnded(t *testing.T) {
	type ending struct {
		asks  string // the verb that ends it
		end   func(context.Context, *client.Client, *client.Task) error
		renew client.Renewal
	}
	release := func(ctx context.Context, _ *client.Client, h *client.Task) error { return h.Release(ctx) }
	done := func(ctx context.Context, _ *client.Client, h *client.Task) error { return h.Done(ctx, "") }
	fail := func(ctx context.Context, _ *client.Client, h *client.Task) error { return h.Fail(ctx, "") }
	closing := func(_ context.Context, c *client.Client, _ *client.Task) error { return c.Close() }
	change := func(ctx context.Context, _ *client.Client, h *client.Task) error {
		return h.Change(ctx, client.Change{Holder: "somebody else"})
	}
	for name, e := range map[string]ending{
		"release":      {asks: "release", end: release, renew: client.RenewAt(0.3)},
		"release, own": {asks: "release", end: release, renew: client.RenewByHand()},
		"done":         {asks: "finish", end: done, renew: client.RenewAt(0.3)},
		"done, own":    {asks: "finish", end: done, renew: client.RenewOnActivity()},
		"fail":         {asks: "finish", end: fail, renew: client.RenewAt(0.3)},
		"close":        {asks: "close", end: closing, renew: client.RenewAt(0.3)},
		changes:        {asks: "change", end: change, renew: client.RenewAt(0.3)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, way := on(t, s)
				c, other := s.Dial(t, way), s.Dial(t)
				if err := other.AddTask(t.Context(), client.NewTask{Path: "jobs/a"}); err != nil {
					t.Fatal(err)
				}
				h := claim(t, c, client.TTL(10*time.Second), client.Renew(e.renew))
				var asked atomic.Int64 // requests come on goroutines of their own
				road.set(func(verb string) {
					if verb != e.asks {
						return
					}
					if asked.Add(1); name == changes {
						return // the lease goes on
					}
					if h.Valid() || h.Token() != 0 || h.Context().Err() == nil {
						t.Errorf("the server is asked to %s what is still relied on", verb)
					}
				}, losing(e.asks, 1000))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_ = e.end(ctx, c, h)
				for _, after := range []time.Duration{0, time.Minute, time.Hour} {
					if time.Sleep(after); h.Valid() || h.Token() != 0 {
						t.Errorf("after %v it is relied on", after)
					}
				}
				if asked.Load() == 0 {
					t.Error("the server was never asked")
				}
			})
		})
	}
}

package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in virtual time, with a server.
func bubble(t *testing.T, test func(t *testing.T, s *leasetest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, leasetest.Start(t)) })
}

func acquire(t *testing.T, c *client.Client, resource string, options ...client.Option) *client.Hold {
	t.Helper()
	h, err := c.Acquire(t.Context(), resource, options...)
	if err != nil {
		t.Fatalf("%s is not acquired: %v", resource, err)
	}
	return h
}

func TestAHoldIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		h := acquire(t, s.Dial(t), "r", client.TTL(10*time.Second))
		first := h.Token()
		for range 100 {
			time.Sleep(7 * time.Second)
			if !h.Valid() || h.Token() != first || h.Context().Err() != nil {
				t.Fatalf("it was lost: %v", h.Err())
			}
			if left := h.Remaining(); left < 5*time.Second || left > 10*time.Second {
				t.Fatalf("%v are left", left)
			}
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h.Valid() || h.Token() != 0 || !errors.Is(context.Cause(h.Context()), client.ErrReleased) || !errors.Is(h.Err(), client.ErrLost) {
			t.Errorf("after the release: %v, %d, %v", h.Valid(), h.Token(), h.Err())
		}
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("released again: %v", err)
		}
	})
}

// A pass has resource, token and floor of one moment: with a floor that was read a moment after the
// token, when the hold was lost, it would shut out those who share the resource.
func TestPass(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		ctx, guard := t.Context(), fence.NewMemory()
		nothing := func(context.Context) error { return nil }
		a := acquire(t, s.Dial(t), "r", client.Shared(), client.TTL(10*time.Second))
		b := acquire(t, s.Dial(t), "r", client.Shared(), client.TTL(10*time.Second))
		if p := b.Pass(); p != (fence.Pass{Token: b.Token(), Floor: a.Token(), Resource: "r"}) {
			t.Errorf("the pass is %+v", p)
		}
		for _, h := range []*client.Hold{a, b, a} {
			if err := guard.Do(ctx, "r", h.Pass(), nothing); err != nil {
				t.Errorf("token %d: %v", h.Token(), err)
			}
		}
		if err := guard.Do(ctx, "other", a.Pass(), nothing); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("at another resource: %v", err)
		}
		if err := b.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := guard.Do(ctx, "r", b.Pass(), nothing); !errors.Is(err, leasehold.ErrLost) || b.Pass().Token != 0 {
			t.Errorf("released, it gets %v with %+v", err, b.Pass())
		}
		if err := guard.Do(ctx, "r", a.Pass(), nothing); err != nil {
			t.Errorf("the one who still shares it: %v", err)
		}
	})
}

func TestTryAcquireSaysWhoHolds(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		acquire(t, a, "r", client.Holder("ann"), client.Reason("release 311"))
		_, err := b.TryAcquire(t.Context(), "r")
		var held *leasehold.Error
		if !errors.Is(err, client.ErrHeld) || !errors.As(err, &held) || held.Lease.Holder != "ann" || held.Lease.Reason != "release 311" {
			t.Errorf("refused with %v", err)
		}
	})
}

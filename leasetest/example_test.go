package leasetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// work is a program that is to be tested: it must stop when it loses its lease.
func work(ctx context.Context, c *client.Client) error {
	return c.Do(ctx, "reports/nightly", func(ctx context.Context, h *client.Hold) error {
		<-ctx.Done() // works for hours
		return context.Cause(ctx)
	})
}

// The test in the package's comment, run.
func TestWorkStopsWhenItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := leasetest.Start(t)
		c := server.Dial(t)
		time.AfterFunc(time.Hour, server.Disconnect)
		began := time.Now()
		err := work(t.Context(), c)
		if !errors.Is(err, client.ErrExpired) {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+30*time.Second {
			t.Errorf("it worked for %v", took)
		}
		server.Connect()
	})
}

// A sleep of the test is the end of a lease that nobody renews.
func TestSleepEndsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leasetest.Start(t).Dial(t)
		h, err := c.TryAcquire(t.Context(), "r", client.Renew(client.RenewNever()), client.TTL(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		if !h.Valid() {
			t.Errorf("lost by %v", h.Err())
		}
		time.Sleep(2 * time.Minute)
		if h.Valid() {
			t.Error("it is valid after its TTL")
		}
	})
}

package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
	"github.com/leasehold/leasehold/store"
)

// An altered store is a plain one whose answers a test replaces.
type altered struct {
	*plain
	acquire func(ctx context.Context, r store.Request) (store.Grant, error)
	renew   func(ctx context.Context, refs []store.Ref) ([]store.Renewal, error)
	release func(ctx context.Context, r store.ReleaseRequest) error
	closed  func()
	asked   atomic.Int64 // acquires and renewals
}

func (a *altered) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	a.asked.Add(1)
	if a.acquire != nil {
		return a.acquire(ctx, r)
	}
	return a.plain.Acquire(ctx, r)
}

func (a *altered) Renew(ctx context.Context, refs ...store.Ref) ([]store.Renewal, error) {
	a.asked.Add(1)
	if a.renew != nil {
		return a.renew(ctx, refs)
	}
	return a.plain.Renew(ctx, refs...)
}

func (a *altered) Release(ctx context.Context, r store.ReleaseRequest) error {
	if a.release != nil {
		return a.release(ctx, r)
	}
	return a.plain.Release(ctx, r)
}

func (a *altered) Close() error {
	if a.closed != nil {
		a.closed()
	}
	return a.plain.Close()
}

// onAltered returns a client on an altered store. What a test alters before the first call is seen by
// all goroutines.
func onAltered(t *testing.T, s *leasetest.Server, changes ...func(*client.Config)) (*altered, *client.Client) {
	t.Helper()
	p, first := onPlain(t, s)
	_ = first.Close()
	a := &altered{plain: p}
	config := s.Config()
	for _, change := range changes {
		change(&config)
	}
	c, err := client.Open(t.Context(), a, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return a, c
}

// A store that answers for fewer leases than it was asked for has renewed none of them.
func TestFewerAnswersThanLeases(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, c := onAltered(t, s)
		a.renew = func(ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			answers, err := a.plain.Renew(ctx, refs...)
			return answers[:len(answers)-1], err
		}
		one, two := acquire(t, c, "one", client.TTL(9*time.Second)), acquire(t, c, "two", client.TTL(9*time.Second))
		began := time.Now()
		<-one.Lost()
		<-two.Lost()
		if took := time.Since(began); took > 9*time.Second || !errors.Is(one.Err(), client.ErrExpired) {
			t.Errorf("lost after %v by %v", took, one.Err())
		}
	})
}

// An answer from before a break arrives after one that told of it. It must not give back what the
// break took.
func TestAnOvertakenAnswerDoesNotUndoABreak(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, c := onAltered(t, s)
		var n atomic.Int64
		a.renew = func(ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			late := n.Add(1) == 1
			answers, err := a.plain.Renew(ctx, refs...)
			if late {
				time.Sleep(1500 * time.Millisecond)
			}
			return answers, err
		}
		h := acquire(t, c, "r", client.TTL(10*time.Second), client.Renew(client.RenewByHand()))
		go func() { _ = h.Renew(t.Context()) }()
		time.Sleep(500 * time.Millisecond)
		period := v1.Duration(2 * time.Second)
		_, err := s.Inside().Break(t.Context(), v1.BreakRequest{ID: h.ID(), By: "ann", Period: &period})
		if err != nil {
			t.Fatal(err)
		}
		broken := time.Now()
		if err := h.Renew(t.Context()); err != nil || h.Remaining() > 2*time.Second {
			t.Fatalf("%v are left: %v", h.Remaining(), err)
		}
		<-h.Lost()
		if took := time.Since(broken); took > 2*time.Second {
			t.Errorf("it was lost %v after a break with a period of 2s", took)
		}
	})
}

// What is missing may be the store's own place. It may come back; until then the store is not asked
// without a pause.
func TestARenewalThatFindsNothingIsNotRepeatedAtOnce(t *testing.T) {
	for _, failure := range []error{leasehold.ErrNotFound, leasehold.ErrLost} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			a, c := onAltered(t, s)
			a.renew = func(context.Context, []store.Ref) ([]store.Renewal, error) {
				if a.asked.Load() > 1000 {
					time.Sleep(time.Second)
				}
				return nil, failure
			}
			h := acquire(t, c, "r", client.TTL(9*time.Second))
			<-h.Lost()
			if n := a.asked.Load(); n > 100 || !errors.Is(h.Err(), client.ErrExpired) {
				t.Errorf("asked %d times: %v", n, h.Err())
			}
		})
	}
}

// Nothing is left of a lease whose break is over in this moment.
func TestABreakWithNothingLeft(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, c := onAltered(t, s)
		a.renew = func(ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			answers, err := a.plain.Renew(ctx, refs...)
			answers[0].State, answers[0].Remaining = leasehold.Breaking, 0
			return answers, err
		}
		h := acquire(t, c, "r", client.TTL(10*time.Second), client.Renew(client.RenewByHand()))
		time.Sleep(time.Second)
		if err := h.Renew(t.Context()); !errors.Is(err, client.ErrLost) || h.Valid() {
			t.Errorf("%v are left: %v", h.Remaining(), err)
		}
	})
}

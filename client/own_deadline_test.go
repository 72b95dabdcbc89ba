package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
)

// A plain store has nothing but the contract: no sessions, no watch, no history. It is a server
// whose other powers are hidden.
type plain struct {
	store.Store

	mu     sync.Mutex // guards what follows
	before func(verb string)
	after  func(verb string) error // an error loses the answer
	item   func(ref store.Ref) error
}

func (p *plain) Features() store.Features {
	f := p.Store.Features()
	f.Store, f.Powers = "plain", []store.Power{store.FairQueue}
	return f
}

func (p *plain) set(before func(string), after func(string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

// meet calls what a test has put in the way of a verb.
func (p *plain) meet(verb string, call func() error) error {
	p.mu.Lock()
	before, after := p.before, p.after
	p.mu.Unlock()
	if before != nil {
		before(verb)
	}
	err := call()
	if after != nil && err == nil {
		err = after(verb)
	}
	return err
}

func (p *plain) Acquire(ctx context.Context, r store.Request) (g store.Grant, err error) {
	err = p.meet("acquire", func() (err error) { g, err = p.Store.Acquire(ctx, r); return err })
	return g, err
}

func (p *plain) Renew(ctx context.Context, refs ...store.Ref) (answers []store.Renewal, err error) {
	err = p.meet("renew", func() (err error) { answers, err = p.Store.Renew(ctx, refs...); return err })
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ref := range refs {
		if p.item != nil && err == nil && p.item(ref) != nil {
			answers[i] = store.Renewal{Err: p.item(ref)}
		}
	}
	return answers, err
}

func (p *plain) Release(ctx context.Context, r store.ReleaseRequest) error {
	return p.meet("release", func() error { return p.Store.Release(ctx, r) })
}

// onPlain returns a client on a plain store.
func onPlain(t *testing.T, s *leasetest.Server) (*plain, *client.Client) {
	t.Helper()
	config := s.Config()
	keeper, err := server.Open(t.Context(), v1.CallerConfig{Server: "http://leasetest", Client: s.HTTP()})
	if err != nil {
		t.Fatal(err)
	}
	p := &plain{Store: keeper}
	c, err := client.Open(t.Context(), p, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

// holders returns who holds a resource.
func holders(t *testing.T, s *leasetest.Server, resource string) []v1.Lease {
	t.Helper()
	r, err := s.Inside().Resource(t.Context(), resource, 0)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		t.Fatal(err)
	}
	return r.Holders
}

func TestALeaseWithoutASessionIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		var holds []*client.Hold
		for i := range 600 { // more than one call renews
			holds = append(holds, acquire(t, c, fmt.Sprint("r", i), client.TTL(10*time.Second)))
		}
		for range 5 {
			time.Sleep(7 * time.Second)
			for _, h := range holds {
				if left := h.Remaining(); !h.Valid() || left < 5*time.Second || left > 10*time.Second {
					t.Fatalf("%v are left: %v", left, h.Err())
				}
			}
		}
		for _, h := range holds[:300] {
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for i, h := range holds {
			if h.Valid() || len(holders(t, s, fmt.Sprint("r", i))) != 0 {
				t.Fatalf("%s is held after the end", h.Resource())
			}
		}
	})
}

// Whatever the store does, the hold ends before the lease could be anybody else's.
func TestALeaseWithoutASessionIsLostInTime(t *testing.T) {
	const ttl = 10 * time.Second
	lost := func(string) error { return errCut }
	trouble := map[string]func(s *leasetest.Server, p *plain){
		"the store is away":        func(s *leasetest.Server, _ *plain) { s.Disconnect() },
		"answers are lost":         func(_ *leasetest.Server, p *plain) { p.set(nil, lost) },
		"answers are late":         func(_ *leasetest.Server, p *plain) { p.set(func(string) { time.Sleep(11 * time.Second) }, nil) },
		"the process was paused":   func(s *leasetest.Server, _ *plain) { s.Suspend(11 * time.Second) },
		"one lease is not decided": func(_ *leasetest.Server, p *plain) { p.item = func(store.Ref) error { return errCut } },
	}
	for name, begin := range trouble {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				p, c := onPlain(t, s)
				h := acquire(t, c, "r", client.TTL(ttl))
				time.Sleep(time.Second)
				began := time.Now()
				begin(s, p)
				if h.Valid() {
					<-h.Lost()
				}
				if took := time.Since(began); took > ttl {
					t.Errorf("it was lost after %v", took)
				}
				if !errors.Is(h.Err(), client.ErrExpired) || h.Token() != 0 {
					t.Errorf("it was lost by %v", h.Err())
				}
				p.mu.Lock()
				p.before, p.after, p.item = nil, nil, nil
				p.mu.Unlock()
				s.Connect()
				time.Sleep(2 * ttl)
				if again := acquire(t, c, "r", client.TTL(ttl)); !again.Valid() {
					t.Error("it cannot be acquired again")
				}
			})
		})
	}
}

// An answer that came late counts from when its request was sent.
func TestALateGrantCountsFromItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		p, c := onPlain(t, s)
		p.set(nil, func(verb string) error { time.Sleep(3 * time.Second); return nil })
		h := acquire(t, c, "r", client.TTL(10*time.Second), client.Renew(client.RenewNever()))
		if left := h.Remaining(); left > 6900*time.Millisecond || left < 6800*time.Millisecond {
			t.Errorf("%v are left", left)
		}
	})
}

func TestABreakIsSeenByTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		h, other := acquire(t, c, "r", client.TTL(9*time.Second)), acquire(t, c, "other", client.TTL(9*time.Second))
		period := v1.Duration(0)
		_, err := s.Inside().Break(t.Context(), v1.BreakRequest{ID: h.ID(), By: "ann", Reason: "stuck", Period: &period})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-h.Lost()
		if took := time.Since(began); took > 4*time.Second || !errors.Is(h.Err(), client.ErrLost) {
			t.Errorf("lost after %v by %v", took, h.Err())
		}
		if !other.Valid() {
			t.Errorf("the other one was lost by %v", other.Err())
		}
	})
}

// A grant that was waited for is renewed before anybody relies on it.
func TestAWaiterWithoutASessionIsGranted(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, first := onPlain(t, s)
		_, second := onPlain(t, s)
		h := acquire(t, first, "r", client.TTL(10*time.Second))
		got := make(chan *client.Hold)
		go func() {
			next, err := second.Acquire(t.Context(), "r", client.TTL(10*time.Second))
			if err != nil {
				t.Errorf("the waiter: %v", err)
			}
			got <- next
		}()
		time.Sleep(95 * time.Second)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := <-got
		if left := next.Remaining(); left < 9*time.Second || next.Token() < 2 {
			t.Errorf("%v are left, token %d", left, next.Token())
		}
	})
}

// A cancelled acquire leaves nothing behind, although its answer was lost.
func TestACancelledAcquireWithoutASessionIsWithdrawn(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		p, c := onPlain(t, s)
		p.set(nil, func(verb string) error {
			if verb == "acquire" {
				return errCut
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "r", client.TTL(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it ended with %v", err)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		if held := holders(t, s, "r"); len(held) != 0 {
			t.Errorf("it is held by %+v", held)
		}
	})
}

func TestWhatAPlainStoreLacksIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		h := acquire(t, c, "r")
		_, session := c.OpenSession(t.Context())
		_, shared := c.TryAcquire(t.Context(), "s", client.Shared())
		_, several := c.AcquireAll(t.Context(), client.All("a", "b"))
		_, record := c.Get(t.Context(), "x")
		for what, err := range map[string]error{
			"sessions": session, "slots": shared, "way to acquire several": several, "records": record,
			"messages": c.Ask(t.Context(), "r", "hello"), "notes": h.Note(t.Context(), "half"),
			"way to give a lease": h.Change(t.Context(), client.Change{Holder: "x"}),
		} {
			if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "plain has no "+what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestTheWaysToRenewWithoutASession(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		byHand := acquire(t, c, "hand", client.TTL(9*time.Second), client.Renew(client.RenewByHand()))
		active := acquire(t, c, "active", client.TTL(9*time.Second), client.Renew(client.RenewOnActivity()))
		never := acquire(t, c, "never", client.TTL(time.Minute), client.Renew(client.RenewNever()))
		for range 5 {
			time.Sleep(5 * time.Second)
			active.Touch()
			if err := byHand.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !byHand.Valid() || !active.Valid() || !never.Valid() {
			t.Errorf("%v, %v, %v", byHand.Err(), active.Err(), never.Err())
		}
		time.Sleep(20 * time.Second)
		if byHand.Valid() || active.Valid() || !never.Valid() {
			t.Errorf("without renewals: %v, %v, %v", byHand.Err(), active.Err(), never.Err())
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if len(holders(t, s, "never")) != 1 {
			t.Error("the reservation did not outlive the client")
		}
	})
}

func TestElectWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		err := c.Elect(t.Context(), "leader", []byte("me"), func(context.Context, *client.Hold) error { return nil })
		if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "values in leases") {
			t.Errorf("a value that has no place: %v", err)
		}
		err = c.Elect(t.Context(), "leader", nil, func(ctx context.Context, h *client.Hold) error {
			leader, err := c.Leader(ctx, "leader")
			if err == nil && leader.Token != h.Token() {
				err = fmt.Errorf("the leader is %+v", leader)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A program may renew a hold by hand while the client renews it in time.
func TestRenewedByHandAndInTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onPlain(t, s)
		var all sync.WaitGroup
		for i := range 4 {
			h := acquire(t, c, fmt.Sprint("r", i), client.TTL(3*time.Second))
			all.Go(func() {
				for range 100 {
					if err := h.Renew(t.Context()); err != nil {
						t.Errorf("it was not renewed: %v", err)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
	})
}

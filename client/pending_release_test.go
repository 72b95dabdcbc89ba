package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// cancelled lets many waits for "busy" begin, and cancels them all at once.
func cancelled(t *testing.T, c *client.Client, waits int, cut func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range waits {
		wg.Go(func() { _, _ = c.Acquire(ctx, "busy", client.TTL(30*time.Second)) })
	}
	time.Sleep(5 * time.Second)
	cut()
	cancel()
	wg.Wait()
}

func slowly(verb string, d time.Duration) func(string) {
	return func(seen string) {
		if seen == verb {
			time.Sleep(d)
		}
	}
}

// Many waits are cancelled at once: each is taken back once, in few messages, and what else the session holds is renewed meanwhile.
func TestCancelledWaitsAreTakenBackOnce(t *testing.T) {
	const waits = 1000
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, through := on(t, s)
		acquire(t, s.Dial(t), "busy")
		c := s.Dial(t, through)
		h := acquire(t, c, "mine", client.TTL(30*time.Second))
		road.set(slowly("release", 50*time.Millisecond), nil)
		cancelled(t, c, waits, func() {})
		time.Sleep(2 * time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("a hold that has nothing to do with it was lost: %v", err)
		}
		if n := road.count("release"); n > 5 {
			t.Errorf("%d waits were taken back by %d messages", waits, n)
		}
		if r, err := s.Inside().Resource(t.Context(), "busy", 0); err != nil || r.Waiting != 0 {
			t.Errorf("%d still wait, %v", r.Waiting, err)
		}
	})
}

// Waits are cancelled while no server can be reached. When it is back, far away, the
// renewal does not stand behind them.
func TestPendingReleasesDoNotDelayARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, through := on(t, s)
		acquire(t, s.Dial(t), "busy")
		c := s.Dial(t, through)
		h := acquire(t, c, "mine", client.TTL(30*time.Second))
		cancelled(t, c, 500, func() { s.Disconnect(); time.Sleep(time.Second) })
		time.Sleep(2 * time.Second)
		road.set(slowly("release", 60*time.Millisecond), nil)
		s.Connect()
		for i := range 60 {
			time.Sleep(2 * time.Second)
			if left := h.Remaining(); left < 15*time.Second {
				t.Fatalf("%d s after the server was back: %v left, %v; %d renewals, %d releases",
					2*i, left, h.Err(), road.count("renew"), road.count("release"))
			}
		}
		if r, err := s.Inside().Resource(t.Context(), "busy", 0); err != nil || r.Waiting != 0 {
			t.Errorf("%d still wait, %v", r.Waiting, err)
		}
	})
}

// Ids that a program chose may be long: a message for many stays within what a server reads.
func TestLongIDsAreTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, through := on(t, s)
		c := s.Dial(t, through)
		acquire(t, c, "other")
		holds := make([]*client.Hold, 200)
		for i := range holds {
			holds[i] = acquire(t, c, fmt.Sprint("r", i))
			if err := holds[i].Change(t.Context(), client.Change{ID: fmt.Sprintf("%01000d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, h := range holds {
			_ = h.Release(ended)
		}
		time.Sleep(time.Minute)
		for i := range holds {
			if r, err := s.Inside().Resource(t.Context(), fmt.Sprint("r", i), 0); err != nil || len(r.Holders) != 0 {
				t.Fatalf("r%d: %+v, %v", i, r.Holders, err)
			}
		}
	})
}

// An acquire that was given up arrives much later: it is refused, or what it got is released, and it leaves nothing
// that the session would keep alive for ever.
func TestALateAcquireIsRefused(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Second, 45 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) { aLateAcquire(t, s, by) })
		})
	}
}

func aLateAcquire(t *testing.T, s *leasetest.Server, by time.Duration) {
	r, way := on(t, s)
	c := s.Dial(t, way)
	acquire(t, c, "other") // keeps the session alive
	answered := make(chan bool, 1)
	r.change(func(r *road) {
		var once sync.Once
		r.keep = func(m message) (d time.Duration) {
			if m.verb == "acquire" {
				once.Do(func() { d = by })
			}
			return d
		}
		r.answered = func(verb string, granted bool) {
			if verb == "acquire" && len(answered) == 0 {
				answered <- granted
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := c.Acquire(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the acquire: %v", err)
	}
	// Over RESP the release comes behind the acquire, until the connection is given up: then it overtakes it.
	behind := !overHTTP(s) && by < 4*time.Second
	if granted := <-answered; granted != behind {
		t.Errorf("the late acquire was granted: %v", granted)
	}
	time.Sleep(time.Second)
	if now, err := s.Inside().Resource(t.Context(), "r", 0); err != nil || len(now.Holders)+now.Waiting != 0 {
		t.Errorf("held by %+v, %d wait, %v", now.Holders, now.Waiting, err)
	}
	most := 1
	if !overHTTP(s) {
		most = 2 // the one behind the acquire, and the one over another connection
	}
	if n := r.count("release"); n < 1 || n > most {
		t.Errorf("it was withdrawn by %d messages", n)
	}
	if _, err := c.TryAcquire(t.Context(), "r"); err != nil {
		t.Errorf("it cannot be acquired afterwards: %v", err)
	}
}

// Calls that were given up in short outages fill the session with marks. It keeps what it holds,
// what else is asked for goes to another one, and what the server will not take is not sent for ever.
func TestCancelledCallsDoNotFillTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		var full atomic.Pointer[string] // the id of a session that takes no more claims or marks
		var refused atomic.Int32        // releases
		road.refuse = func(m message) string {
			id := full.Load()
			if id == nil || m.verb != "acquire" && m.verb != "release" || !strings.Contains(m.text, *id) {
				return ""
			}
			if m.verb == "release" {
				refused.Add(1)
			}
			return limited(fmt.Sprintf("session %q has 16384 leases, waiters and records", *id))
		}
		c := s.Dial(t, way)
		h := acquire(t, c, "mine", client.TTL(30*time.Second))
		s.Disconnect()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _ = c.TryAcquire(ctx, fmt.Sprint("r", i), client.TTL(30*time.Second))
			})
		}
		wg.Wait()
		r, err := s.Inside().Resource(t.Context(), "mine", 0)
		if err != nil {
			t.Fatal(err)
		}
		full.Store(&r.Holders[0].Session)
		s.Connect()
		time.Sleep(2 * time.Minute)
		if other, err := c.TryAcquire(t.Context(), "free", client.TTL(30*time.Second)); err != nil || !other.Valid() {
			t.Errorf("nobody holds it, and this client has one lease: %v", err)
		}
		if refused.Load() == 0 {
			t.Error("nothing was taken back")
		}
		before := refused.Load()
		time.Sleep(5 * time.Minute)
		if n := refused.Load() - before; n > 0 {
			t.Errorf("%d releases were sent in five idle minutes", n)
		}
		if !h.Valid() {
			t.Error(h.Err())
		}
	})
}

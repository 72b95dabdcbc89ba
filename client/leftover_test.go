package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
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

// A lease that was granted is released if the renewal that has to confirm it is refused.
func TestAGrantThatIsNotConfirmedIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, first := onPlain(t, s)
		a, c := onAltered(t, s)
		a.renew = func(context.Context, []store.Ref) ([]store.Renewal, error) { return nil, leasehold.ErrLimited }
		h := acquire(t, first, "r")
		time.AfterFunc(time.Second, func() { _ = h.Release(t.Context()) })
		if _, err := c.Acquire(t.Context(), "r", client.TTL(time.Hour)); !errors.Is(err, leasehold.ErrLimited) {
			t.Fatalf("acquired: %v", err)
		}
		time.Sleep(5 * time.Second)
		if held := holders(t, s, "r"); len(held) != 0 {
			t.Errorf("it is held by %+v", held)
		}
	})
}

// Close releases what an attempt under way was about to release.
func TestCloseReleasesWhatIsBeingReleased(t *testing.T) {
	for _, renewal := range []client.Renewal{client.RenewAt(0.3), client.RenewByHand(), client.RenewNever()} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			a, c := onAltered(t, s)
			var away atomic.Bool
			away.Store(true)
			a.release = func(ctx context.Context, r store.ReleaseRequest) error {
				if away.Load() {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return a.plain.Release(ctx, r)
			}
			h := acquire(t, c, "r", client.TTL(time.Hour), client.Renew(renewal))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := h.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("released: %v", err)
			}
			time.Sleep(2 * time.Second) // an attempt is under way
			away.Store(false)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if held := holders(t, s, "r"); len(held) != 0 {
				t.Errorf("it is held by %+v", held)
			}
		})
	}
}

// An acquire that is cancelled by Close, or just before it, leaves nothing behind.
func TestCloseWithdrawsAnAcquire(t *testing.T) {
	for _, renewal := range []client.Renewal{client.RenewAt(0.3), client.RenewNever()} {
		for _, before := range []bool{true, false} {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				a, c := onAltered(t, s)
				a.acquire = func(ctx context.Context, r store.Request) (store.Grant, error) {
					_, _ = a.plain.Acquire(ctx, r)
					<-ctx.Done() // its answer is lost
					return store.Grant{}, context.Cause(ctx)
				}
				a.release = func(ctx context.Context, r store.ReleaseRequest) error {
					select {
					case <-time.After(100 * time.Millisecond):
						return a.plain.Release(ctx, r)
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					if _, err := c.Acquire(ctx, "r", client.TTL(time.Hour), client.Renew(renewal)); err == nil {
						t.Error("acquired")
					}
				}()
				time.Sleep(time.Second)
				if before {
					cancel()
					<-done
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				<-done
				if held := holders(t, s, "r"); len(held) != 0 {
					t.Errorf("before %v: it is held by %+v", before, held)
				}
			})
		}
	}
}

func TestCloseReleasesThousands(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, c := onAltered(t, s)
		for i := range 2100 {
			acquire(t, c, fmt.Sprint("r", i), client.TTL(time.Hour))
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range 2100 {
			if len(holders(t, s, fmt.Sprint("r", i))) != 0 {
				t.Fatalf("r%d is held after the end", i)
			}
		}
	})
}

// What is over costs nothing any more: no requests, and no session that a pause could endanger.
func TestNothingIsLeftOfAnEndedHold(t *testing.T) {
	ends := map[string]func(a *altered, h *client.Hold){
		"by its TTL": func(*altered, *client.Hold) {},
		"by a release that is refused": func(a *altered, h *client.Hold) {
			a.release = func(context.Context, store.ReleaseRequest) error { a.asked.Add(1); return leasehold.ErrDenied }
			_ = h.Release(context.Background())
		},
	}
	for name, end := range ends {
		for how, renewal := range map[string]client.Renewal{
			"in time": client.RenewAt(0.3), "by hand": client.RenewByHand(), "never": client.RenewNever(),
		} {
			t.Run(name+", renewed "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *leasetest.Server) {
					stalls := make(chan client.Stall, 10)
					a, c := onAltered(t, s, func(config *client.Config) { config.OnStall = func(s client.Stall) { stalls <- s } })
					h := acquire(t, c, "r", client.TTL(6*time.Second), client.Renew(renewal))
					end(a, h)
					if how == "in time" && h.Valid() {
						_ = h.Release(t.Context())
					}
					time.Sleep(time.Minute)
					before := a.asked.Load()
					time.Sleep(time.Minute)
					if more := a.asked.Load() - before; more != 0 {
						t.Errorf("%d requests in a minute", more)
					}
					s.Suspend(4 * time.Second)
					time.Sleep(2 * time.Second)
					synctest.Wait()
					if len(stalls) != 0 {
						t.Errorf("a stall that endangers nothing is reported: %+v", <-stalls)
					}
				})
			})
		}
	}
}

// A wait that takes several requests ends with Held when it is over, although the store waits anew
// with each of them.
func TestALongWaitEndsWithHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		_, first := onPlain(t, s)
		a, c := onAltered(t, s)
		a.acquire = func(ctx context.Context, r store.Request) (store.Grant, error) {
			wait := r.Wait
			r.Wait = min(r.Wait, time.Minute)
			return store.Await(ctx, store.Waiting{For: wait, Poll: time.Second},
				func(ctx context.Context) (store.Grant, error) {
					r.Wait = 0
					return a.plain.Acquire(ctx, r)
				})
		}
		acquire(t, first, "r")
		began := time.Now()
		_, err := c.Acquire(t.Context(), "r", client.Wait(70*time.Second))
		if took := time.Since(began); !errors.Is(err, client.ErrHeld) || took != 70*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A store whose answer is always another id is not asked without a pause.
func TestAnAcquireThatIsAlwaysLostPauses(t *testing.T) {
	for _, failure := range []error{leasehold.ErrLost, leasehold.ErrHeld} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			a, c := onAltered(t, s)
			a.acquire = func(context.Context, store.Request) (store.Grant, error) {
				if a.asked.Load() > 1000 {
					time.Sleep(time.Second)
				}
				return store.Grant{}, failure
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := c.Acquire(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if n := a.asked.Load(); n > 100 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// A client that could not be opened does not keep its store open.
func TestDialClosesTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, _ := onAltered(t, s)
		var closed atomic.Int64
		a.closed = func() { closed.Add(1) }
		store.Register("test-closed", func(context.Context, *url.URL, store.Settings) (store.Store, error) { return a, nil })
		_, err := client.Dial(t.Context(), client.Config{Servers: []string{"test-closed://x"}, TTL: time.Millisecond})
		if !errors.Is(err, leasehold.ErrInvalid) || closed.Load() != 1 {
			t.Errorf("%v; closed %d times", err, closed.Load())
		}
	})
}

// Renew returns an error if its own lease was not renewed.
func TestRenewTellsOfItsOwnLease(t *testing.T) {
	answers := map[string]store.Renewal{
		"not decided": {Err: leasehold.ErrUndecided},
		"not known":   {Ended: &leasehold.Ending{}},
	}
	for name, answer := range answers {
		for _, renewal := range []client.Renewal{client.RenewAt(0.3), client.RenewByHand()} {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				a, c := onAltered(t, s)
				h := acquire(t, c, "r", client.TTL(time.Minute), client.Renew(renewal))
				a.renew = func(context.Context, []store.Ref) ([]store.Renewal, error) {
					return []store.Renewal{answer}, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := h.Renew(ctx); err == nil {
					t.Errorf("%s: it says that it was renewed", name)
				}
			})
		}
	}
}

// A session that is unused for its TTL is not closed while a release goes on: if that fails, the
// client goes on trying.
func TestAReleaseOutlivesItsSession(t *testing.T) {
	for _, renewal := range []client.Renewal{client.RenewAt(0.3), client.RenewByHand(), client.RenewNever()} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			a, c := onAltered(t, s)
			var released, away atomic.Bool
			away.Store(true)
			a.release = func(ctx context.Context, r store.ReleaseRequest) error {
				if away.Load() {
					return leasehold.ErrUnavailable
				}
				released.Store(true)
				return a.plain.Release(ctx, r)
			}
			h := acquire(t, c, "r", client.TTL(time.Second), client.Renew(renewal))
			if err := h.Release(t.Context()); !errors.Is(err, leasehold.ErrUnavailable) {
				t.Fatalf("released: %v", err)
			}
			time.Sleep(time.Minute)
			away.Store(false)
			time.Sleep(5 * time.Second)
			if !released.Load() {
				t.Error("the client no longer tries to release it")
			}
		})
	}
}

// A store may keep the place of a waiter whose wait is over, so that it can ask again. The client does
// not ask again, and nobody may have to wait behind it.
func TestAWaitThatIsOverIsWithdrawn(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, c := onAltered(t, s)
		a.acquire = func(ctx context.Context, r store.Request) (store.Grant, error) {
			time.Sleep(r.Wait)
			return store.Grant{}, leasehold.ErrHeld
		}
		var withdrawn atomic.Int64
		a.release = func(_ context.Context, r store.ReleaseRequest) error {
			if r.Withdraw {
				withdrawn.Add(1)
			}
			return nil
		}
		if _, err := c.TryAcquire(t.Context(), "r"); !errors.Is(err, client.ErrHeld) {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := withdrawn.Load(); n != 0 {
			t.Errorf("what never waited was withdrawn %d times", n)
		}
		if _, err := c.Acquire(t.Context(), "r", client.Wait(10*time.Second)); !errors.Is(err, client.ErrHeld) {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := withdrawn.Load(); n != 1 {
			t.Errorf("it was withdrawn %d times", n)
		}
	})
}

// A wrapper has the features of the store in it, but not its methods.
func TestAStoreThatListsWhatItLacks(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		keeper, err := server.Open(t.Context(), v1.CallerConfig{Server: "http://leasetest", Client: s.HTTP()})
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.Open(t.Context(), struct{ store.Store }{keeper}, s.Config())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h := acquire(t, c, "r")
		_, session := c.OpenSession(t.Context())
		_, record := c.Get(t.Context(), "x")
		for what, err := range map[string]error{
			"sessions": session, "records": record, "messages": c.Ask(t.Context(), "r", "hello"),
			"notes": h.Note(t.Context(), "half"), "change": h.Change(t.Context(), client.Change{Holder: "x"}),
		} {
			if !errors.Is(err, leasehold.ErrRefused) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A store that needs its time renews fewer leases by one request.
func TestManyLeasesOnASlowStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, c := onAltered(t, s)
		a.renew = func(ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			select {
			case <-time.After(time.Duration(len(refs)) * 3 * time.Millisecond):
				return a.plain.Renew(ctx, refs...)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		var holds []*client.Hold
		for i := range 600 {
			holds = append(holds, acquire(t, c, fmt.Sprint("r", i), client.TTL(6*time.Second)))
		}
		time.Sleep(time.Minute)
		lost := 0
		for _, h := range holds {
			if !h.Valid() {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d leases were lost", lost)
		}
	})
}

// Close releases what a caller of Release still waits for.
func TestCloseDuringARelease(t *testing.T) {
	for _, renewal := range []client.Renewal{client.RenewAt(0.3), client.RenewByHand(), client.RenewNever()} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			a, c := onAltered(t, s)
			a.release = func(ctx context.Context, r store.ReleaseRequest) error {
				if !r.Withdraw { // that of the caller
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return a.plain.Release(ctx, r)
			}
			h := acquire(t, c, "r", client.TTL(time.Hour), client.Renew(renewal))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			done := make(chan struct{})
			go func() { defer close(done); _ = h.Release(ctx) }()
			time.Sleep(time.Second)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			<-done
			if held := holders(t, s, "r"); len(held) != 0 {
				t.Errorf("it is held by %+v", held)
			}
		})
	}
}

// The URL of a store may have commas, unlike that of a server.
func TestTheURLOfAStoreInTheEnvironment(t *testing.T) {
	opened := ""
	store.Register("test-hosts", func(_ context.Context, u *url.URL, _ store.Settings) (store.Store, error) {
		opened = u.Host
		return nil, leasehold.ErrDenied
	})
	t.Setenv("LEASEHOLD_SERVER", "test-hosts://a:1,b:2/x")
	if _, err := client.Dial(t.Context(), client.Config{}); err != leasehold.ErrDenied || opened != "a:1,b:2" {
		t.Errorf("opened %q: %v", opened, err)
	}
}

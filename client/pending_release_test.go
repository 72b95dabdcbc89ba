package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
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

// Many waits are cancelled at once: each is taken back once, in few messages where the
// server takes many, and what else the session holds is renewed meanwhile.
func TestCancelledWaitsAreTakenBackOnce(t *testing.T) {
	const waits = 1000
	for level, most := range map[string]int{"3": waits, "4": 5} {
		t.Run("level "+level, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, through := on(s)
				road.level = level
				acquire(t, s.Dial(t), "busy")
				c := s.Dial(t, through)
				h := acquire(t, c, "mine", client.TTL(30*time.Second))
				road.set(slowly("release", 50*time.Millisecond), nil)
				cancelled(t, c, waits, func() {})
				time.Sleep(2 * time.Minute)
				if err := h.Err(); err != nil {
					t.Errorf("a hold that has nothing to do with it was lost: %v", err)
				}
				if n := road.count("release"); n > most {
					t.Errorf("%d waits were taken back by %d messages", waits, n)
				}
				if r, err := s.Inside().Resource(t.Context(), "busy", 0); err != nil || r.Waiting != 0 {
					t.Errorf("%d still wait, %v", r.Waiting, err)
				}
			})
		})
	}
}

// Waits are cancelled while no server can be reached. When it is back, far away, the
// renewal does not stand behind them.
func TestPendingReleasesDoNotDelayARenewal(t *testing.T) {
	for _, level := range []string{"3", "4"} {
		t.Run("level "+level, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, through := on(s)
				road.level = level
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
		})
	}
}

// Ids that a program chose may be long: a message for many stays within what a server reads.
func TestLongIDsAreTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, through := on(s)
		road.level = "4"
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

// late delivers the first acquire of a resource long after the client gave it up.
type late struct {
	*road
	resource string
	by       time.Duration
	answered chan int
	once     sync.Once
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	if verbOf(r) != "acquire" {
		return l.road.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	keep := false
	if bytes.Contains(body, []byte(`"resource":"`+l.resource+`"`)) {
		l.once.Do(func() { keep = true })
	}
	if !keep {
		return l.road.RoundTrip(r)
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	later := r.Clone(context.Background())
	later.Body = io.NopCloser(bytes.NewReader(body))
	time.AfterFunc(l.by, func() {
		response, err := l.road.RoundTrip(later)
		if err != nil {
			l.answered <- 0
			return
		}
		_ = response.Body.Close()
		l.answered <- response.StatusCode
	})
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An acquire that was given up arrives much later: it is refused, and leaves nothing that the
// session would keep alive for ever.
func TestALateAcquireIsRefused(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Second, 45 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, _ := on(s)
				way := &late{road: road, resource: "r", by: by, answered: make(chan int, 1)}
				c := s.Dial(t, byHTTP(way))
				acquire(t, c, "other") // keeps the session alive
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if _, err := c.Acquire(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the acquire: %v", err)
				}
				if code := <-way.answered; code == http.StatusOK {
					t.Errorf("the late acquire was granted")
				}
				if r, err := s.Inside().Resource(t.Context(), "r", 0); err != nil || len(r.Holders)+r.Waiting != 0 {
					t.Errorf("held by %+v, %d wait, %v", r.Holders, r.Waiting, err)
				}
				if n := road.count("release"); n != 1 {
					t.Errorf("it was withdrawn by %d messages", n)
				}
				if _, err := c.TryAcquire(t.Context(), "r"); err != nil {
					t.Errorf("it cannot be acquired afterwards: %v", err)
				}
			})
		})
	}
}

// Calls that were given up in short outages fill the session with marks. It keeps what it holds,
// what else is asked for goes to another one, and what the server will not take is not sent for ever.
func TestCancelledCallsDoNotFillTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		full := &fullSession{}
		full.road, _ = on(s)
		c := s.Dial(t, byHTTP(full))
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
		full.id.Store(&r.Holders[0].Session)
		s.Connect()
		time.Sleep(2 * time.Minute)
		if other, err := c.TryAcquire(t.Context(), "free", client.TTL(30*time.Second)); err != nil || !other.Valid() {
			t.Errorf("nobody holds it, and this client has one lease: %v", err)
		}
		if full.refused.Load() == 0 {
			t.Error("nothing was taken back")
		}
		before := full.refused.Load()
		time.Sleep(5 * time.Minute)
		if n := full.refused.Load() - before; n > 0 {
			t.Errorf("%d releases were sent in five idle minutes", n)
		}
		if !h.Valid() {
			t.Error(h.Err())
		}
	})
}

// fullSession is a way to a server on which one session takes no more claims or marks.
type fullSession struct {
	*road
	id      atomic.Pointer[string]
	refused atomic.Int32 // releases
}

func (f *fullSession) RoundTrip(r *http.Request) (*http.Response, error) {
	verb, id := verbOf(r), f.id.Load()
	if id == nil || verb != "acquire" && verb != "release" {
		return f.road.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte(*id)) {
		return f.road.RoundTrip(r)
	}
	if verb == "release" {
		f.refused.Add(1)
	}
	problem := fmt.Sprintf(`{"status":429,"code":"limited","detail":"session \"%s\" has 16384 leases, waiters and records"}`, *id)
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Header: http.Header{"Content-Type": {"application/problem+json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(problem)),
	}, nil
}

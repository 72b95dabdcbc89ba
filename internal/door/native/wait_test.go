package native

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// An outcome is what a request came to that ran beside the test.
type outcome struct {
	lease v1.Lease
	err   error
	at    time.Time
}

// begin sends an acquire and lets it wait.
func (h *house) begin(ctx context.Context, r v1.AcquireRequest, options ...v1.Option) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		l, err := h.caller.Acquire(ctx, r, options...)
		done <- outcome{l, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

func for_(d time.Duration) v1.Duration { return v1.Duration(d) }

func ttl(d time.Duration) v1.TTL { return v1.TTL{Duration: v1.Duration(d)} }

// A waiter stays in the queue for as long as its connection is there, and gets the
// lease the moment that it is free.
func TestWaitIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
		done := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(time.Hour)})
		if got := value(h.door.backend.Metrics().Waiting); got != 1 {
			t.Errorf("%v requests wait", got)
		}
		// Far longer than a waiter lives without a sign of life, and than any time
		// limit of the server.
		time.Sleep(30 * time.Minute)
		r := h.resource("r")
		if r.Waiting != 1 || r.Queue[0].Holder != "bob" || r.Queue[0].Position != 1 {
			t.Fatalf("the resource is %+v", r)
		}
		freed := time.Now()
		if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if got.err != nil || got.lease.Holder != "bob" || got.lease.Token != 2 || got.at.Sub(freed) > time.Millisecond {
			t.Errorf("bob has %+v", got)
		}
		if got.lease.WaitedMS != (30 * time.Minute).Milliseconds() {
			t.Errorf("bob waited %d ms", got.lease.WaitedMS)
		}
		if got := value(h.door.backend.Metrics().Waiting); got != 0 {
			t.Errorf("%v requests wait", got)
		}
	})
}

func TestWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", TTL: v1.TTL{None: true}, Reason: "work"})
		began := time.Now()
		_, err := h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(7 * time.Second)})
		var held *leasehold.Error
		if !errors.As(err, &held) || held.Code != leasehold.Held || held.Lease.Holder != "ann" || held.Lease.Reason != "work" {
			t.Errorf("the error is %+v", err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("it took %v", took)
		}
		if r := h.resource("r"); r.Waiting != 0 {
			t.Errorf("the resource is %+v", r)
		}
	})
}

// Who proposed no id cannot ask again for what it left behind, so it leaves
// nothing.
func TestLeavingWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
		ctx, leave := context.WithCancel(t.Context())
		done := h.begin(ctx, v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(time.Hour)})
		if r := h.resource("r"); r.Waiting != 1 {
			t.Fatalf("the resource is %+v", r)
		}
		leave()
		if got := <-done; !errors.Is(got.err, leasehold.ErrUndecided) || !errors.Is(got.err, context.Canceled) {
			t.Errorf("the error is %v", got.err)
		}
		synctest.Wait()
		if r := h.resource("r"); r.Waiting != 0 {
			t.Errorf("the resource is %+v", r)
		}
	})
}

// Who proposed an id, or named its request, or waits in a session may be about to
// ask again on another connection: its place is kept.
func TestLeavingKeepsThePlace(t *testing.T) {
	for _, test := range []struct {
		name    string
		request v1.AcquireRequest
		options []v1.Option
		stays   time.Duration // 0: for as long as the session does
	}{
		{"proposed id", v1.AcquireRequest{ID: "b"}, nil, 15 * time.Second},
		{"named request", v1.AcquireRequest{}, []v1.Option{v1.WithKey("k")}, 15 * time.Second},
		{"session and proposed id", v1.AcquireRequest{ID: "b", Session: "s"}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Config{})
				defer h.close()
				if _, err := h.caller.OpenSession(t.Context(), v1.SessionRequest{ID: "s", TTL: ttl(time.Hour)}); err != nil {
					t.Fatal(err)
				}
				h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
				test.request.Resource, test.request.Holder, test.request.Wait = "r", "bob", for_(30*time.Minute)

				ctx, leave := context.WithCancel(t.Context())
				done := h.begin(ctx, test.request, test.options...)
				time.Sleep(20 * time.Minute)
				leave()
				<-done
				time.Sleep(9 * time.Second)
				if r := h.resource("r"); r.Waiting != 1 {
					t.Errorf("soon after it left, the resource is %+v", r)
				}
				// It asks again, and has waited for 20 minutes already.
				again := h.begin(t.Context(), test.request, test.options...)
				if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); err != nil {
					t.Fatal(err)
				}
				if got := <-again; got.err != nil || got.lease.Holder != "bob" {
					t.Errorf("bob has %+v", got)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Config{})
				defer h.close()
				if _, err := h.caller.OpenSession(t.Context(), v1.SessionRequest{ID: "s", TTL: ttl(time.Minute)}); err != nil {
					t.Fatal(err)
				}
				h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
				ctx, leave := context.WithCancel(t.Context())
				done := h.begin(ctx, test.request, test.options...)
				leave()
				<-done
				stays := test.stays
				if stays == 0 {
					stays = time.Minute
				}
				time.Sleep(stays - time.Millisecond)
				if r := h.resource("r"); r.Waiting != 1 {
					t.Errorf("it left the queue before its time: %+v", r)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if r := h.resource("r"); r.Waiting != 0 {
					t.Errorf("it stays for ever: %+v", r)
				}
			})
		})
	}
}

// late is an engine that decides an acquire only when its caller has left.
type late struct{ engine.Engine }

func (l late) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if _, ok := command.(*core.Acquire); ok {
		<-ctx.Done()
	}
	return l.Engine.Do(context.WithoutCancel(ctx), command)
}

// Submit does commands one after the other.
func (l late) Submit(batch []engine.Submission) { engine.SubmitEach(l.Do, batch) }

// A lease that is granted at the very moment at which the caller leaves is given
// back, unless the caller knows how to ask for it.
func TestLeavingAtTheGrant(t *testing.T) {
	for body, state := range map[string]string{
		`{"resource":"r","holder":"bob","ttl":null}`:             "available",
		`{"resource":"r","holder":"bob","ttl":null,"wait":"1m"}`: "available",
		`{"resource":"r","holder":"bob","ttl":null,"id":"b"}`:    "leased",
	} {
		synctest.Test(t, func(t *testing.T) {
			door := newDoor(t, Config{})
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acquire", strings.NewReader(body))
				open(late{door.backend.Engine()}, Config{}).ServeHTTP(httptest.NewRecorder(), r)
			}()
			synctest.Wait()
			leave()
			<-done
			ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"state":"`+state+`"`)
		})
	}
}

// A renewal of what still waits is a sign of life, and no yes.
func TestRenewOfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
		one := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", ID: "b", Wait: for_(time.Minute)})
		two := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "eve", ID: "e", Wait: for_(time.Minute)})
		_, err := h.caller.Renew(t.Context(), v1.RenewRequest{ID: "e"})
		var held *leasehold.Error
		if !errors.As(err, &held) || held.Code != leasehold.Held || held.Position != 2 || held.Waiting != 2 || held.Lease.Holder != "ann" {
			t.Errorf("the error is %+v", err)
		}
		<-one
		<-two
	})
}

// More waits and watches than there may be get a clear answer at once.
func TestStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{MaxStreams: 2})
		defer h.close()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
		done := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(10 * time.Second)})
		w := h.watch("")
		if _, err := h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "eve", Wait: for_(time.Second)}); !errors.Is(err, leasehold.ErrLimited) {
			t.Errorf("the error is %v", err)
		}
		for _, err := range h.caller.Watch(t.Context(), v1.WatchQuery{}) {
			if !errors.Is(err, leasehold.ErrLimited) {
				t.Errorf("the error is %v", err)
			}
		}
		// What does not stay goes on.
		if _, err := h.caller.Renew(t.Context(), v1.RenewRequest{ID: "a"}); err != nil {
			t.Error(err)
		}
		w.close()
		synctest.Wait()
		if _, err := h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "eve", Wait: for_(time.Second)}); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("the error is %v", err)
		}
		<-done
	})
}

// At the end of a server those who wait are told, what has a name keeps its place,
// watches end, and what is under way is finished.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		h := build(t, Config{Linger: 2 * time.Second, Log: slog.New(slog.NewTextHandler(log, nil))})
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
		unnamed := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(time.Hour)})
		named := h.begin(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "eve", ID: "e", Wait: for_(time.Hour)})
		w := h.watch("")
		w.hello()
		h.stop()
		synctest.Wait()

		if got := <-unnamed; !errors.Is(got.err, leasehold.ErrUnavailable) || got.err.Error() != "the server is stopping: try again" {
			t.Errorf("bob is told %v", got.err)
		}
		if got := <-named; !errors.Is(got.err, leasehold.ErrUndecided) {
			t.Errorf("eve is told %v", got.err)
		}
		if rest := w.rest(); !strings.HasSuffix(rest, ": the server is stopping: come back with the last id\n\n") {
			t.Errorf("the watch ends with %q", rest)
		}

		// It is not ready, and refuses what comes now, but answers it.
		response, err := h.client.Get("http://pipe/readyz")
		if err != nil || response.StatusCode != 503 {
			t.Errorf("readyz: %v %v", response, err)
		}
		response.Body.Close()
		var r leasehold.Status
		if err := h.engine.Read(t.Context(), func(v core.View) { r = v.Status("default", "r", 10) }); err != nil || r.Waiting != 1 || r.Queue[0].Holder != "eve" {
			t.Errorf("the resource is %+v, %v", r, err)
		}
		if _, err := h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(time.Second)}); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("who wants to wait now is told %v", err)
		}
		if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("who gives back now is told %v", err)
		}
		h.close()
		if _, err := h.caller.Renew(t.Context(), v1.RenewRequest{ID: "e"}); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("after the end: %v", err)
		}
		if log.String() != "" {
			t.Errorf("what had to be is written down as a failure: %s", log)
		}
	})
}

// A keyed request without an id waits; its connection breaks; it is sent again. It is still one
// request, also after its first answer is forgotten.
func TestAKeyedWaitIsSentAgain(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 11 * time.Minute} {
		for _, also := range [][]v1.AcquireItem{nil, {{Resource: "q"}, {Resource: "s"}}} {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Config{})
				defer h.close()
				h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{None: true}})
				request := v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: for_(30 * time.Minute), Also: also}
				ctx, leave := context.WithCancel(t.Context())
				first := h.begin(ctx, request, v1.WithKey("k"))
				time.Sleep(after)
				leave()
				<-first
				time.Sleep(2 * time.Second)
				again := h.begin(t.Context(), request, v1.WithKey("k"))
				if r := h.resource("r"); r.Waiting != 1 {
					t.Errorf("after %v: %d wait for one request", after, r.Waiting)
				}
				if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); err != nil {
					t.Fatal(err)
				}
				got := <-again
				if got.err != nil || len(got.lease.Also) != len(also) {
					t.Errorf("after %v: %+v, %v", after, got.lease, got.err)
				}
			})
		}
	}
}

// Each of several leases has an id and a token that the caller needs, also if it has to ask twice.
func TestAKeyedRequestForSeveralIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		request := v1.AcquireRequest{Resource: "r", Holder: "bob", Also: []v1.AcquireItem{{Resource: "q"}}, TTL: v1.TTL{None: true}}
		ask := func(key string) (v1.Lease, error) { return h.caller.Acquire(t.Context(), request, v1.WithKey(key)) }
		one, err := ask("k")
		if err != nil || len(one.Also) != 1 || one.ID == one.Also[0].ID {
			t.Fatalf("%+v, %v", one, err)
		}
		for _, after := range []time.Duration{0, 11 * time.Minute} {
			time.Sleep(after)
			two, err := ask("k")
			if err != nil || two.ID != one.ID || len(two.Also) != 1 || two.Also[0].ID != one.Also[0].ID || two.Also[0].Token != one.Also[0].Token {
				t.Errorf("after %v: %+v, %v; first it was %+v", after, two, err, one)
			}
		}
		if _, err := ask("another"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("another key is told %v", err)
		}
		// A key that is used again is no new request while anybody may still mean the old one.
		for _, id := range []string{one.ID, one.Also[0].ID} {
			if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ask("k"); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("a key that is used again is told %v", err)
		}
		time.Sleep(11 * time.Minute)
		h.acquire(v1.AcquireRequest{Resource: "other", Holder: "ann", ID: "o"}) // time moves with the log
		if three, err := ask("k"); err != nil || three.Token <= one.Token {
			t.Errorf("much later: %+v, %v", three, err)
		}
	})
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/leasetest"
)

// operator talks to the server without a client.
func operator(t *testing.T, s *leasetest.Server) *v1.Caller {
	t.Helper()
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://leasetest", Client: s.HTTP()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdle)
	return caller
}

func TestAWaitEndsWithTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		h := acquire(t, a, "r")
		var seen []client.Waiting
		time.AfterFunc(10*time.Minute, func() { _ = h.Release(t.Context()) })
		began := time.Now()
		next := acquire(t, b, "r", client.Progress(func(w client.Waiting) { seen = append(seen, w) }))
		if took := time.Since(began); took < 10*time.Minute || took > 10*time.Minute+time.Second {
			t.Errorf("it waited for %v", took)
		}
		if next.Token() == 0 || next.Remaining() < 15*time.Second {
			t.Errorf("token %d, %v left", next.Token(), next.Remaining())
		}
		if len(seen) == 0 || seen[0].Position != 1 || seen[0].Queue != 1 || seen[0].Holder != "test" {
			t.Errorf("progress: %+v", seen)
		}
	})
}

func TestAWaitIsLimited(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		acquire(t, a, "r", client.Holder("ann"))
		began := time.Now()
		_, err := b.Acquire(t.Context(), "r", client.Wait(time.Minute))
		if !errors.Is(err, client.ErrHeld) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no patience"))
		defer cancel()
		_, err = b.Acquire(ctx, "r")
		if err == nil || !strings.Contains(err.Error(), "no patience") {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		if r, err := operator(t, s).Resource(t.Context(), "r", 0); err != nil || r.Waiting != 0 {
			t.Errorf("%d still wait, %v", r.Waiting, err)
		}
	})
}

// What was withdrawn while no server could be reached must not stay in the queue, where
// the session would keep it alive for ever.
func TestAWithdrawnWaitDoesNotStay(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		acquire(t, a, "r")
		acquire(t, b, "other")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(55*time.Second, s.Disconnect)
		time.AfterFunc(65*time.Second, s.Connect)
		if _, err := b.Acquire(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(30 * time.Second)
		if r, err := operator(t, s).Resource(t.Context(), "r", 0); err != nil || r.Waiting != 0 {
			t.Errorf("%d still wait, %v", r.Waiting, err)
		}
	})
}

func TestDoReleasesAfterTheWork(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		ctx, cancel := context.WithCancel(t.Context())
		failure := errors.New("no paper")
		err := c.Do(ctx, "r", func(ctx context.Context, h *client.Hold) error {
			cancel()
			<-ctx.Done()
			if !h.Valid() {
				t.Error("it was released while the work went on")
			}
			if got, ok := client.HoldFrom(ctx); !ok || got != h {
				t.Error("the context does not know the hold")
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("the error is %v", err)
		}
		if h, err := c.TryAcquire(t.Context(), "r"); err != nil {
			t.Errorf("it was not released: %v", err)
		} else {
			_ = h.Release(t.Context())
		}
		func() {
			defer func() { _ = recover() }()
			_ = c.Do(t.Context(), "r", func(context.Context, *client.Hold) error { panic("oh") })
		}()
		if _, err := c.TryAcquire(t.Context(), "r"); err != nil {
			t.Errorf("it was not released after a panic: %v", err)
		}
	})
}

// Who defers a release with the context that just ended has it released all the same.
func TestAReleaseWithAContextThatEnded(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		h := acquire(t, c, "r")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Release(ctx); err == nil || h.Valid() {
			t.Errorf("released: %v, valid: %v", err, h.Valid())
		}
		time.Sleep(time.Second)
		if _, err := c.TryAcquire(t.Context(), "r"); err != nil {
			t.Errorf("it is still held: %v", err)
		}
	})
}

func TestDoTellsOfALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		err := s.Dial(t).Do(t.Context(), "r", func(ctx context.Context, h *client.Hold) error {
			s.Disconnect()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrExpired) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, client.ErrLost) || !errors.Is(err, client.ErrExpired) {
			t.Errorf("the error is %v", err)
		}
		s.Connect()
	})
}

func TestABreakIsHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		h := acquire(t, c, "r")
		now := v1.Duration(0)
		if _, err := op.Break(t.Context(), v1.BreakRequest{ID: h.ID(), Period: &now, By: "ops", Reason: "maintenance"}); err != nil {
			t.Fatal(err)
		}
		<-h.Lost()
		var lost *client.LostError
		if err := context.Cause(h.Context()); !errors.Is(err, client.ErrBroken) || !errors.As(err, &lost) || lost.By != "ops" || lost.Reason != "maintenance" {
			t.Errorf("the cause is %v", err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, client.ErrBroken) {
			t.Errorf("the release says %v", err)
		}
		acquire(t, c, "r")
	})
}

func TestABreakIsAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		h, other := acquire(t, c, "r", client.TTL(time.Minute)), acquire(t, c, "other", client.TTL(time.Minute))
		period := v1.Duration(10 * time.Minute)
		if _, err := op.Break(t.Context(), v1.BreakRequest{ID: h.ID(), Period: &period, By: "ops", Reason: "maintenance"}); err != nil {
			t.Fatal(err)
		}
		if m := <-h.Messages(); !m.Break || m.By != "ops" || m.Text != "maintenance" {
			t.Errorf("the message is %+v", m)
		}
		// The end that was announced comes no later than announced, and not much earlier.
		began := time.Now()
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Minute || took < 9*time.Minute+50*time.Second {
			t.Errorf("it was lost after %v", took)
		}
		if !other.Valid() {
			t.Errorf("the other is lost: %v", other.Err())
		}
	})
}

func TestAMessageArrives(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		h := acquire(t, c, "r")
		synctest.Wait()
		for i := range 20 {
			if _, err := op.Ask(t.Context(), v1.AskRequest{Resource: "r", By: "bob", Message: fmt.Sprint("please ", i)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if m := <-h.Messages(); m.By != "bob" || m.Text != "please 4" {
			t.Errorf("the oldest that is kept is %+v", m)
		}
	})
}

func TestTheHoldLimitIsKept(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Minute} {
		t.Run(fmt.Sprint("after ", wait), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				c := s.Dial(t)
				if wait > 0 {
					before := acquire(t, c, "r")
					time.AfterFunc(wait, func() { _ = before.Release(t.Context()) })
				}
				h := acquire(t, c, "r", client.HoldLimit(time.Hour))
				began := time.Now()
				<-h.Lost()
				if took := time.Since(began); took > time.Hour || took < 59*time.Minute {
					t.Errorf("it was held for %v", took)
				}
				if !errors.Is(h.Err(), client.ErrExpired) {
					t.Errorf("lost by %v", h.Err())
				}
			})
		})
	}
}

func TestChange(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		h := acquire(t, c, "r")
		first := h.Token()
		if err := h.Change(t.Context(), client.Change{ID: "another"}); err != nil || h.ID() != "another" || h.Token() != first {
			t.Fatalf("%v: id %s, token %d", err, h.ID(), h.Token())
		}
		if err := h.Change(t.Context(), client.Change{Holder: "bob"}); err != nil || h.Token() <= first {
			t.Fatalf("%v: token %d", err, h.Token())
		}
		time.Sleep(time.Hour)
		if !h.Valid() {
			t.Fatalf("lost by %v", h.Err())
		}
		// Somebody else gives it another id, which changes nothing for us.
		if _, err := op.Change(t.Context(), v1.ChangeRequest{ID: "another", NewID: "third"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if !h.Valid() || h.ID() != "third" {
			t.Fatalf("id %s, %v", h.ID(), h.Err())
		}
		// Somebody else gives it to another holder, and it is no longer ours.
		if _, err := op.Change(t.Context(), v1.ChangeRequest{ID: "third", Holder: "eve"}); err != nil {
			t.Fatal(err)
		}
		<-h.Lost()
		if !errors.Is(h.Err(), client.ErrChanged) {
			t.Errorf("lost by %v", h.Err())
		}
	})
}

// With a new holder the token is new, and a guard that has seen it refuses what the old holder shows.
func TestAChangeShutsTheOldTokenOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		h, guard := acquire(t, s.Dial(t), "r"), fence.NewMemory()
		old := h.Pass()
		if err := h.Change(t.Context(), client.Change{Holder: "bob"}); err != nil {
			t.Fatal(err)
		}
		enter := func(p fence.Pass) error {
			return guard.Do(t.Context(), "r", p, func(context.Context) error { return nil })
		}
		if err := enter(h.Pass()); err != nil || h.Floor() != h.Token() {
			t.Fatalf("the new holder: %v, token %d and floor %d", err, h.Token(), h.Floor())
		}
		if err := enter(old); !errors.Is(err, client.ErrLost) {
			t.Errorf("the old token is let in: %v", err)
		}
	})
}

func TestHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		h := acquire(t, c, "r")
		if err := h.HandOver(t.Context(), "bob"); !errors.Is(err, leasehold.ErrNotFound) || !h.Valid() {
			t.Errorf("handed to nobody: %v", err)
		}
		won := make(chan string, 2)
		for _, name := range []string{"ann", "bob"} {
			go func() {
				next, err := c.Acquire(t.Context(), "r", client.Holder(name))
				if err == nil {
					won <- name
					_ = next.Release(t.Context())
				}
			}()
			synctest.Wait()
		}
		if err := h.HandOver(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		if first := <-won; first != "bob" {
			t.Errorf("%s got it", first)
		}
		<-won
		history, err := op.History(t.Context(), v1.HistoryQuery{Resource: "r"})
		if err != nil {
			t.Fatal(err)
		}
		// No gap: the release and the grant are one revision.
		for i, e := range history.Items {
			if e.Kind == "acquired" && e.Holder == "bob" && (history.Items[i-1].Kind != "ended" || history.Items[i-1].At != e.At) {
				t.Errorf("before the grant: %+v", history.Items[i-1])
			}
		}
	})
}

func TestRenewals(t *testing.T) {
	held := func(t *testing.T, h *client.Hold) time.Duration {
		began := time.Now()
		<-h.Lost()
		return time.Since(began)
	}
	const ttl = 10 * time.Second
	for _, waited := range []bool{false, true} {
		get := func(t *testing.T, s *leasetest.Server, r client.Renewal) *client.Hold {
			c := s.Dial(t)
			if waited {
				before := acquire(t, c, "r")
				time.AfterFunc(time.Hour, func() { _ = before.Release(t.Context()) })
			}
			return acquire(t, c, "r", client.TTL(ttl), client.Renew(r))
		}
		name := fmt.Sprint(", waited ", waited)
		t.Run("never"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				if d := held(t, get(t, s, client.RenewNever())); d < 9*time.Second || d > ttl {
					t.Errorf("held for %v", d)
				}
			})
		})
		t.Run("by hand"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				h := get(t, s, client.RenewByHand())
				time.Sleep(8 * time.Second)
				if err := h.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
				if d := held(t, h); d < 9*time.Second || d > ttl {
					t.Errorf("held for %v more", d)
				}
				if err := h.Renew(t.Context()); !errors.Is(err, client.ErrLost) {
					t.Errorf("renewed: %v", err)
				}
			})
		})
		t.Run("on activity"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				h := get(t, s, client.RenewOnActivity())
				for range 60 {
					time.Sleep(time.Second)
					h.Touch()
				}
				if d := held(t, h); d < 6*time.Second || d > 2*ttl {
					t.Errorf("held for %v after the last touch", d)
				}
			})
		})
		t.Run("continuously"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				h := get(t, s, client.RenewContinuously())
				for range 1000 {
					time.Sleep(137 * time.Millisecond)
					if h.Remaining() < 9*time.Second {
						t.Fatalf("%v are left", h.Remaining())
					}
				}
			})
		})
	}
}

// A reservation outlives who made it.
func TestAReservationOutlivesItsClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		acquire(t, c, "room", client.TTL(time.Hour), client.Renew(client.RenewNever()))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		other := s.Dial(t)
		time.Sleep(50 * time.Minute)
		if _, err := other.TryAcquire(t.Context(), "room"); !errors.Is(err, client.ErrHeld) {
			t.Errorf("after 50 minutes: %v", err)
		}
		time.Sleep(11 * time.Minute)
		if _, err := other.TryAcquire(t.Context(), "room"); err != nil {
			t.Errorf("after an hour: %v", err)
		}
	})
}

func TestSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		session, err := c.OpenSession(t.Context(), client.TTL(time.Minute), client.Label("service", "mail"))
		if err != nil {
			t.Fatal(err)
		}
		a, b := acquire(t, c, "a", client.In(session)), acquire(t, c, "b", client.In(session))
		other := acquire(t, c, "c")
		time.Sleep(time.Hour)
		if !session.Valid() || !a.Valid() || !b.Valid() {
			t.Fatalf("lost: %v, %v", a.Err(), b.Err())
		}
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, h := range []*client.Hold{a, b} {
			if !errors.Is(h.Err(), client.ErrSessionClosed) || !errors.Is(h.Err(), client.ErrLost) {
				t.Errorf("lost by %v", h.Err())
			}
		}
		if session.Valid() || session.Context().Err() == nil || !other.Valid() {
			t.Error("the wrong things ended")
		}
		if _, err := c.Acquire(t.Context(), "a", client.In(session)); !errors.Is(err, client.ErrLost) {
			t.Errorf("acquired in a session that ended: %v", err)
		}
		acquire(t, c, "a")
	})
}

// An operator that closes the session on the server ends what it holds.
func TestASessionIsClosedElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		session, err := c.OpenSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := acquire(t, c, "r", client.In(session))
		if err := op.CloseSession(t.Context(), session.ID()); err != nil {
			t.Fatal(err)
		}
		<-h.Lost()
		if !errors.Is(h.Err(), client.ErrSessionClosed) {
			t.Errorf("lost by %v", h.Err())
		}
	})
}

// Another process learns the session before it is opened, and ends it for a holder that died.
func TestASessionIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		var ids []string
		c := s.Dial(t, func(config *client.Config) { config.OnSession = func(id string) { ids = append(ids, id) } })
		op := operator(t, s)
		h := acquire(t, c, "r", client.Grace(time.Hour))
		if len(ids) != 1 {
			t.Fatalf("it was told of sessions %v", ids)
		}
		if err := op.AbandonSession(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		<-h.Lost()
		if !errors.Is(h.Err(), client.ErrExpired) {
			t.Errorf("lost by %v", h.Err())
		}
		if _, err := s.Dial(t).TryAcquire(t.Context(), "r"); !errors.Is(err, client.ErrHeld) {
			t.Errorf("it does not rest: %v", err)
		}
	})
}

// A session that nobody uses is not renewed for ever.
func TestAnIdleSessionIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, op := s.Dial(t), operator(t, s)
		for range 3 {
			h := acquire(t, c, "r")
			_ = h.Release(t.Context())
			time.Sleep(5 * time.Minute)
		}
		history, err := op.History(t.Context(), v1.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		closed := 0
		for _, e := range history.Items {
			if e.Kind == "session ended" && e.How == "session closed" {
				closed++
			}
		}
		if closed != 3 {
			t.Errorf("%d sessions were closed: %+v", closed, history.Items)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		h := acquire(t, a, "r")
		waiting := make(chan error)
		go func() {
			_, err := a.Acquire(t.Context(), "r")
			waiting <- err
		}()
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err == nil {
			t.Error("a closed client waits on")
		}
		if !errors.Is(h.Err(), client.ErrSessionClosed) {
			t.Errorf("lost by %v", h.Err())
		}
		if _, err := b.TryAcquire(t.Context(), "r"); err != nil {
			t.Errorf("it was not released: %v", err)
		}
		if _, err := a.Acquire(t.Context(), "r"); !errors.Is(err, leasehold.ErrRefused) {
			t.Errorf("a closed client acquires: %v", err)
		}
	})
}

func TestAStallIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		stalls := make(chan client.Stall, 9)
		c := s.Dial(t, func(config *client.Config) { config.OnStall = func(stall client.Stall) { stalls <- stall } })
		h := acquire(t, c, "r", client.TTL(30*time.Second))
		time.Sleep(time.Hour)
		s.Suspend(9 * time.Second)
		time.Sleep(time.Second)
		if len(stalls) != 0 {
			t.Fatalf("a short pause: %+v", <-stalls)
		}
		s.Suspend(12 * time.Second)
		if stall := <-stalls; stall.Paused < 12*time.Second-time.Second || stall.TTL != 30*time.Second || stall.Lost || !h.Valid() {
			t.Errorf("%+v, %v", stall, h.Err())
		}
		s.Suspend(time.Minute)
		if stall := <-stalls; !stall.Lost || h.Valid() {
			t.Errorf("%+v, %v", stall, h.Err())
		}
	})
}

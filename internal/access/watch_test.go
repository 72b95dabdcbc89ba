package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// follow collects what somebody's watch shows until it ends, and how it ended.
type followed struct {
	seen  []string
	err   error
	ended time.Time
	done  chan struct{}
}

func (w *world) follow(ctx context.Context, namespace string) *followed {
	w.t.Helper()
	watcher, err := engine.Watch(ctx, w.guard, engine.Filter{Namespace: namespace}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	f := &followed{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for {
			events, err := watcher.Next(ctx)
			for _, e := range events {
				f.seen = append(f.seen, fmt.Sprint(e.Kind, " ", e.Resource, e.Session))
			}
			if err != nil {
				f.err, f.ended = err, time.Now()
				return
			}
		}
	}()
	return f
}

func TestAWatchShowsWhatMayBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(as("ann"))
		ann := w.follow(ctx, space)
		all, stop := context.WithCancel(as("op"))
		op := w.follow(all, space)
		w.populate()
		synctest.Wait()
		cancel()
		stop()
		<-ann.done
		<-op.done
		if len(op.seen) <= len(ann.seen) || len(ann.seen) < 6 {
			t.Errorf("ann saw %d, and an operator %d", len(ann.seen), len(op.seen))
		}
		for _, seen := range ann.seen {
			if !contains(seen, " a/", "session-a") {
				t.Errorf("ann saw %s", seen)
			}
		}
		if _, err := engine.Watch(as("ann"), w.guard, engine.Filter{Namespace: "other"}, nil); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("another namespace: %v", err)
		}
		if _, _, open := w.guard.Feed().History(space); open {
			t.Error("the feed shows all of history")
		}
	})
}

// What is taken away ends a watch within a second, although nothing happens that it would show.
func TestRevocationEndsWatches(t *testing.T) {
	for name, take := range map[string]func(*world){
		"the token":   func(w *world) { w.change(policy.Keys{Tokens: []string{"t-ann"}}, policy.Items{}) },
		"the binding": func(w *world) { w.change(policy.Keys{Bindings: []string{"ann" + space + "a/"}}, policy.Items{}) },
		"the verb": func(w *world) {
			w.change(policy.Keys{}, policy.Items{Roles: []*policy.Role{{Name: "deaf", Any: policy.Of(policy.Read)}},
				Bindings: []*policy.Binding{bind("ann", "deaf", space, "a/")}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(as("ann"))
				defer cancel()
				others, stop := context.WithCancel(as("bob"))
				defer stop()
				ann, bob := w.follow(ctx, space), w.follow(others, space)
				time.Sleep(10 * time.Minute)
				began := time.Now()
				take(w)
				<-ann.done
				if took := ann.ended.Sub(began); !errors.Is(ann.err, leasehold.ErrDenied) || took > time.Second {
					t.Errorf("it ended after %v with %v", took, ann.err)
				}
				w.acquire("bob", space, "b/y", "later")
				synctest.Wait()
				stop()
				if <-bob.done; len(bob.seen) != 1 {
					t.Errorf("bob's went on with %v, %v", bob.seen, bob.err)
				}
			})
		})
	}
}

// A watch that began before there was a policy has no asker.
func TestAPolicyEndsWatchesOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		w := &world{t, e, New(e)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := w.follow(ctx, space)
		time.Sleep(time.Hour)
		w.change(policy.Keys{}, policy.Items{Tokens: []*policy.Token{token("root")},
			Bindings: []*policy.Binding{bind("root", "admin", policy.AllNamespaces, "")}})
		if <-f.done; !errors.Is(f.err, leasehold.ErrDenied) {
			t.Errorf("it ended with %v", f.err)
		}
	})
}

func TestANewPermitCountsForWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(as("ann"))
		ann := w.follow(ctx, space)
		w.acquire("bob", space, "b/before", "1")
		synctest.Wait()
		w.change(policy.Keys{}, policy.Items{Bindings: []*policy.Binding{bind("ann", "viewer", space, "b/")}})
		w.acquire("bob", space, "b/after", "2")
		synctest.Wait()
		cancel()
		if <-ann.done; len(ann.seen) != 1 || !contains(ann.seen[0], "b/after") {
			t.Errorf("ann saw %v", ann.seen)
		}
	})
}

// A leaderless engine answers nothing.
type leaderless struct {
	*memory.Engine
	lost  atomic.Bool
	takes time.Duration // for a read
}

func (l *leaderless) Read(ctx context.Context, fn func(core.View)) error {
	if l.lost.Load() {
		<-ctx.Done()
		return engine.Unavailable("no leader is known")
	}
	if l.takes > 0 {
		pause(ctx, l.takes)
	}
	return l.Engine.Read(ctx, fn)
}

// Do waits three seconds for a leader, as servers do.
func (l *leaderless) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	for began := time.Now(); l.lost.Load(); pause(ctx, 100*time.Millisecond) {
		switch {
		case ctx.Err() != nil:
			return core.Answer{}, engine.Undecided("the request ended before its answer was known")
		case time.Since(began) > 3*time.Second:
			return core.Answer{}, engine.Unavailable("no leader is known")
		}
	}
	return l.Engine.Do(ctx, c)
}

func TestWatchesEndWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alone := &leaderless{Engine: w.bare}
		w.guard = New(alone)
		ctx, cancel := context.WithCancel(as("ann"))
		defer cancel()
		ann := w.follow(ctx, space)
		time.Sleep(time.Hour)
		began := time.Now()
		alone.lost.Store(true)
		<-ann.done
		if took := ann.ended.Sub(began); !errors.Is(ann.err, leasehold.ErrUnavailable) || took > time.Second {
			t.Errorf("it ended after %v with %v", took, ann.err)
		}
		within, stop := context.WithTimeout(as("ann"), time.Second)
		defer stop()
		if _, err := engine.Watch(within, w.guard, engine.Filter{Namespace: space}, nil); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("another one: %v", err)
		}
		alone.lost.Store(false)
		time.Sleep(2 * time.Second)
		again, end := context.WithCancel(as("ann"))
		f := w.follow(again, space)
		end()
		<-f.done
	})
}

// Servers that are far from each other take long to read, but less than an election takes: that is no reason to end
// anything.
func TestWatchesOutlastSlowReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.guard = New(&leaderless{Engine: w.bare, takes: 700 * time.Millisecond})
		ctx, cancel := context.WithCancel(as("ann"))
		ann := w.follow(ctx, space)
		staying, leave := engine.Stay(ctx, w.guard)
		time.Sleep(time.Minute)
		select {
		case <-ann.done:
			t.Errorf("the watch ended: %v", ann.err)
		default:
		}
		if staying.Err() != nil {
			t.Error("the wait ended")
		}
		leave()
		cancel()
		<-ann.done
	})
}

// waited is what a wait came to.
type waited struct {
	answer core.Answer
	err    error
	ended  time.Time
}

// wait has ann wait for a/x. proposed: the id is hers, and not the server's.
func wait(ctx context.Context, e engine.Engine, id string, proposed bool) <-chan waited {
	done := make(chan waited, 1)
	go func() {
		answer, err := engine.Acquire(ctx, e, &core.Acquire{Namespace: space, Resource: "a/x", ID: id,
			Holder: "waiter", TTL: time.Minute, Wait: time.Hour}, proposed)
		done <- waited{answer, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// queue returns the ids of those who wait for a/x, in their order.
func (w *world) queue() (ids []string) {
	w.t.Helper()
	err := w.bare.Read(context.Background(), func(v core.View) {
		for _, waiter := range v.Status(space, "a/x", 10).Queue {
			ids = append(ids, waiter.ID)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// A wait at a server that is cut off ends within a second, whatever it does at that moment, and goes on in its place at
// another server.
func TestWaitsEndWithoutALeader(t *testing.T) {
	// The signs of life of a waiter are five seconds apart: one of them is under way when the server is given up.
	for _, after := range []time.Duration{0, time.Second, 4*time.Second + 900*time.Millisecond, time.Minute} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.acquire("ann", space, "a/x", "held")
				alone := &leaderless{Engine: w.bare}
				ann := wait(as("ann"), New(alone), "first", true)
				bob := wait(as("ann"), w.guard, "second", true)
				time.Sleep(after)
				began := time.Now()
				alone.lost.Store(true)
				got := <-ann
				if took := got.ended.Sub(began); !errors.Is(got.err, leasehold.ErrUndecided) || took > time.Second {
					t.Fatalf("it ended after %v with %v", took, got.err)
				}
				if !strings.Contains(got.err.Error(), "ask another one, with the same id") {
					t.Errorf("what to do is not said: %v", got.err)
				}
				again := wait(as("ann"), w.guard, "first", true)
				if ids := w.queue(); !slices.Equal(ids, []string{"first", "second"}) {
					t.Fatalf("the queue is %v", ids)
				}
				w.do("ann", &core.Release{Namespace: space, ID: "held"})
				if got := <-again; got.err != nil || got.answer.Lease == nil || got.answer.Lease.ID != "first" {
					t.Fatalf("the first got %+v", got)
				}
				w.do("ann", &core.Release{Namespace: space, ID: "first"})
				if got := <-bob; got.err != nil || got.answer.Lease == nil {
					t.Fatalf("the second got %+v", got)
				}
			})
		})
	}
}

// Nobody can ask again for what only the server has a name for: it is taken back when there is a leader.
func TestANamelessWaitIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.acquire("ann", space, "a/x", "held")
		alone := &leaderless{Engine: w.bare}
		ann := wait(as("ann"), New(alone), "made", false)
		began := time.Now()
		alone.lost.Store(true)
		got := <-ann
		if took := got.ended.Sub(began); !errors.Is(got.err, leasehold.ErrUndecided) || took > time.Second {
			t.Errorf("it ended after %v with %v", took, got.err)
		}
		if ids := w.queue(); len(ids) != 1 {
			t.Errorf("the queue is %v", ids)
		}
		time.Sleep(time.Second)
		alone.lost.Store(false)
		time.Sleep(time.Second)
		if ids := w.queue(); len(ids) != 0 {
			t.Errorf("the queue is %v", ids)
		}
	})
}

// Without a policy nobody's right can be gone: a wait outlives an election.
func TestWaitsOfNobodyGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		alone := &leaderless{Engine: e}
		w := &world{t, e, New(alone)}
		w.acquire("ann", space, "a/x", "held")
		ann := wait(t.Context(), w.guard, "first", true)
		alone.lost.Store(true)
		time.Sleep(4 * time.Second)
		alone.lost.Store(false)
		w.do("ann", &core.Release{Namespace: space, ID: "held"})
		if got := <-ann; got.err != nil || got.answer.Lease == nil {
			t.Errorf("it got %+v", got)
		}
	})
}

// Who lost the right to a resource no longer waits for it, and a policy that changes nothing for it ends nothing.
func TestRevocationEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.acquire("ann", space, "a/x", "held")
		first := wait(as("ann"), w.guard, "first", true)
		w.change(policy.Keys{}, policy.Items{Tokens: []*policy.Token{token("new")}})
		synctest.Wait()
		w.do("ann", &core.Release{Namespace: space, ID: "held"})
		if got := <-first; got.err != nil || got.answer.Lease == nil {
			t.Fatalf("the first got %+v", got)
		}
		second := wait(as("ann"), w.guard, "second", true)
		began := time.Now()
		if _, err := w.guard.Do(as("root"), &command.ChangeAccess{Remove: policy.Keys{Tokens: []string{"t-ann"}}}); err != nil {
			t.Fatal(err)
		}
		if got := <-second; !errors.Is(got.err, leasehold.ErrDenied) || time.Since(began) > time.Second {
			t.Errorf("after %v the second got %+v", time.Since(began), got)
		}
	})
}

func contains(s string, any ...string) bool {
	return slices.ContainsFunc(any, func(part string) bool { return strings.Contains(s, part) })
}

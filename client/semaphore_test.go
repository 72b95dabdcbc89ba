package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

func TestSharedHolds(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		a, b := acquire(t, c, "r", client.Shared()), acquire(t, c, "r", client.Shared())
		if a.Slots() != 1 || b.Floor() != a.Token() || b.Token() <= a.Token() {
			t.Errorf("slots %d, floor %d, tokens %d and %d", a.Slots(), b.Floor(), a.Token(), b.Token())
		}
		if _, err := c.TryAcquire(t.Context(), "r"); !errors.Is(err, client.ErrHeld) {
			t.Errorf("exclusive beside shared: %v", err)
		}
		_ = a.Release(t.Context())
		_ = b.Release(t.Context())
		if h := acquire(t, c, "r"); h.Slots() != 0 || h.Floor() != h.Token() {
			t.Errorf("slots %d, floor %d", h.Slots(), h.Floor())
		}
	})
}

func TestAcquireAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		b := acquire(t, c, "b")
		time.AfterFunc(time.Minute, func() { _ = b.Release(t.Context()) })
		began := time.Now()
		holds, err := c.AcquireAll(t.Context(), append(client.All("a", "b"), client.Item{Resource: "c", Shared: true}), client.TTL(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
		for i, name := range []string{"a", "b", "c"} {
			if h := holds[i]; h.Resource() != name || !h.Valid() || h.Token() == 0 {
				t.Errorf("%d: %s, token %d, %v", i, h.Resource(), h.Token(), h.Err())
			}
		}
		if err := holds[0].Release(t.Context()); err != nil || !holds[1].Valid() {
			t.Errorf("they are not independent: %v, %v", err, holds[1].Err())
		}
		// None of several is held if one cannot be.
		if _, err := c.AcquireAll(t.Context(), client.All("d", "b"), client.Wait(0)); !errors.Is(err, client.ErrHeld) {
			t.Errorf("the error is %v", err)
		}
		acquire(t, c, "d")
		if _, err := c.AcquireAll(t.Context(), nil); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("nothing: %v", err)
		}
	})
}

// The reply to an acquire of several is lost: all are found again, each once.
func TestALostReplyToSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		road.set(nil, losing("acquire", 2))
		c := s.Dial(t, way)
		holds, err := c.AcquireAll(t.Context(), client.All("a", "b"))
		if err != nil || holds[1].Token() != holds[0].Token()+1 {
			t.Fatalf("%v, %v", holds, err)
		}
		for _, h := range holds {
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Two goroutines of one program wait for each other: the one that closes the circle is
// told, and those that have nothing to do with it are not.
func TestACircleIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		x, y := acquire(t, c, "x"), acquire(t, c, "y")
		waiting := make(chan error, 1)
		go func() {
			h, err := c.Acquire(x.Context(), "y")
			if err == nil {
				_ = h.Release(t.Context())
			}
			waiting <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Acquire(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one who holds nothing may wait: %v", err)
		}
		_, err := c.Acquire(y.Context(), "x")
		var refused *leasehold.Error
		if !errors.Is(err, leasehold.ErrRefused) || !errors.As(err, &refused) || len(refused.Cycle) != 2 {
			t.Errorf("the circle: %v", err)
		}
		_ = y.Release(t.Context())
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

func TestADefinitionLimitsTheHold(t *testing.T) {
	for _, wait := range []time.Duration{0, 7 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint("after ", wait), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				if _, err := s.Inside().Define(t.Context(), "r", v1.DefinitionRequest{HoldLimit: v1.Duration(10 * time.Minute)}); err != nil {
					t.Fatal(err)
				}
				c := s.Dial(t)
				if wait > 0 {
					before := acquire(t, c, "r")
					time.AfterFunc(wait, func() { _ = before.Release(t.Context()) })
				}
				h := acquire(t, c, "r")
				began := time.Now()
				<-h.Lost()
				if took := time.Since(began); took > 10*time.Minute || took < 9*time.Minute+40*time.Second {
					t.Errorf("it was held for %v", took)
				}
			})
		})
	}
}

// Who comes after an unclean end is warned of it, where that is defined.
func TestAHolderIsWarned(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		if _, err := s.Inside().Define(t.Context(), "r", v1.DefinitionRequest{Unclean: "warn"}); err != nil {
			t.Fatal(err)
		}
		c := s.Dial(t)
		first := acquire(t, c, "r", client.Renew(client.RenewNever()), client.Holder("ann"))
		if first.After() != nil {
			t.Errorf("warned of %+v", first.After())
		}
		time.Sleep(time.Minute)
		if h := acquire(t, c, "r"); h.After() == nil || h.After().Holder != "ann" || h.After().How.Clean() {
			t.Errorf("warned of %+v", h.After())
		}
	})
}

func TestRWMutex(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		m := c.RWMutex("m")
		m.RLock()
		m.RLock()
		if m.TryLock() {
			t.Error("locked beside readers")
		}
		m.RUnlock()
		m.RUnlock()
		m.Lock()
		if m.TryRLock() {
			t.Error("read beside a writer")
		}
		m.Unlock()
		reader := m.RLocker()
		reader.Lock()
		defer reader.Unlock()
	})
}

func TestSemaphore(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		sem := c.Semaphore("licenses", 3)
		n, most := 0, 0
		var (
			wg sync.WaitGroup
			mu sync.Mutex
		)
		add := func(d int) {
			mu.Lock()
			defer mu.Unlock()
			n += d
			most = max(most, n)
		}
		for i := range 10 {
			wg.Go(func() {
				h, err := sem.Acquire(t.Context(), 1+i%2)
				if err != nil {
					t.Error(err)
					return
				}
				add(h.Slots())
				time.Sleep(time.Second)
				add(-h.Slots())
				_ = h.Release(t.Context())
			})
		}
		wg.Wait()
		if most != 3 {
			t.Errorf("%d slots at once", most)
		}
		if _, err := sem.TryAcquire(t.Context(), 4); err == nil {
			t.Error("more than there are")
		}
		// No slots at all used to be all of them.
		for _, n := range []int{0, -1} {
			if h, err := sem.TryAcquire(t.Context(), n); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%d slots: %v, %v", n, h, err)
			}
			if h, err := c.Acquire(t.Context(), "another", client.Slots(n, 0)); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%d slots: %v, %v", n, h, err)
			}
		}
	})
}

func TestPool(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		pool := c.Pool("gpu")
		if err := pool.Define(t.Context(), "gpu0", "gpu1", "gpu2"); err != nil {
			t.Fatal(err)
		}
		a, err := pool.Acquire(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		b, err := pool.TryAcquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Sorted(slices.Values(append(a.Units(), b.Units()...)))
		if !slices.Equal(all, []string{"gpu0", "gpu1", "gpu2"}) {
			t.Errorf("the units are %v", all)
		}
		if _, err := pool.TryAcquire(t.Context(), 1); !errors.Is(err, client.ErrHeld) {
			t.Errorf("the fourth: %v", err)
		}
	})
}

// Naming the units of a pool keeps the rest of what is defined, and a mutex on it is still alone.
func TestPoolKeepsItsDefinition(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		inside := s.Inside()
		if _, err := inside.Define(t.Context(), "gpu", v1.DefinitionRequest{Units: []string{"gpu0"}, Grace: v1.Duration(time.Second)}); err != nil {
			t.Fatal(err)
		}
		pool := c.Pool("gpu")
		for _, units := range [][]string{{"gpu0", "gpu1"}, {"gpu1"}, {"gpu1", "gpu2"}} {
			if err := pool.Define(t.Context(), units...); err != nil {
				t.Fatal(err)
			}
			d, err := inside.Definition(t.Context(), "gpu")
			if err != nil || !slices.Equal(d.Units, units) || d.Grace == nil {
				t.Errorf("the definition is %+v, %v", d, err)
			}
		}
		h := acquire(t, c, "gpu")
		if _, err := pool.TryAcquire(t.Context(), 1); !errors.Is(err, client.ErrHeld) || len(h.Units()) != 2 {
			t.Errorf("an exclusive hold has %v, and beside it: %v", h.Units(), err)
		}
	})
}

// A value is read from the server once, and then from memory, until somebody writes it.
func TestCache(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		reader, writer := s.Dial(t, way).Cache(), s.Dial(t).Cache()
		if _, err := reader.Get(t.Context(), "config"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("nothing is there: %v", err)
		}
		for n := range 3 {
			value := fmt.Sprint("value ", n)
			began := time.Now()
			if err := writer.Put(t.Context(), "config", []byte(value)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the writer waited for %v", took)
			}
			before := 0
			for i := range 100 {
				got, err := reader.Get(t.Context(), "config")
				if err != nil || string(got) != value {
					t.Fatalf("read %s, %v", got, err)
				}
				if i == 0 {
					before = road.count("records/config")
				}
				time.Sleep(time.Second)
			}
			if after := road.count("records/config"); after != before {
				t.Errorf("it was read %d times more", after-before)
			}
		}
		// A reader that is cut off keeps a writer waiting for a TTL, and is not stale for a
		// moment.
		s.Disconnect()
		done := make(chan time.Duration)
		began := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			s.Connect()
		}()
		go func() {
			for {
				if _, err := reader.Get(t.Context(), "config"); err != nil {
					break
				}
				if time.Since(began) > 2*time.Second {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			done <- time.Since(began)
		}()
		if took := <-done; took < 2*time.Second {
			t.Errorf("it was not read from memory while the server was away: %v", took)
		}
	})
}

// No reader ever sees an old value after a write was answered, whatever happens to the
// network of the readers.
func TestTheCacheIsNeverStale(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		const ttl = 5 * time.Second
		road, way := on(t, s)
		var n int
		var mu sync.Mutex
		reader := s.Dial(t, way).Cache(client.TTL(ttl))
		writer := s.Dial(t).Cache(client.TTL(ttl))
		if err := writer.Put(t.Context(), "v", []byte{0}); err != nil {
			t.Fatal(err)
		}
		road.set(nil, func(verb string) error {
			mu.Lock()
			defer mu.Unlock()
			if verb == "hello" {
				return nil // or each connection would be cut at its first command
			}
			if n++; n%3 == 0 {
				return errCut
			}
			return nil
		})
		for i := range byte(100) {
			if err := writer.Put(t.Context(), "v", []byte{i}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				got, err := reader.Get(t.Context(), "v")
				if err != nil || got[0] != i {
					t.Fatalf("read %v, %v after %d was written", got, err, i)
				}
				time.Sleep(time.Second)
			}
		}
	})
}

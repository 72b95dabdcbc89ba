package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// onLine returns once calls use the line.
func onLine(t testing.TB, s *Store) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if s.line.taken.CompareAndSwap(false, true) {
			works := time.Since(s.line.answered) < idle/2
			s.line.taken.Store(false)
			if works {
				return
			}
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("no call has used the line")
		}
		if _, err := s.Read(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
}

// A call on the line ends when its context is cancelled, with or without a deadline, and the next one works.
func TestACancelledCallOnTheLine(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	mustAcquire(t, s, "r", "a")
	for name, limit := range map[string]time.Duration{"no deadline": 0, "a deadline": time.Minute} {
		onLine(t, s)
		server.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		if limit > 0 {
			ctx, cancel = context.WithTimeout(t.Context(), limit)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
		began := time.Now()
		_, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the call ended with %v", name, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: the call ended after %v", name, took)
		}
		server.Resume()
		if _, err := s.Read(t.Context(), "r"); err != nil {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
}

// The line is not used again before it was tried, if nobody has used it for a while or it has failed: the answer
// comes on the shared connection, which the driver watches.
func TestALineThatIsNotKnownToWork(t *testing.T) {
	t.Parallel()
	link := peer.StartProxy(t, peer.StartRedis(t, peer.RedisConfig{}).Address)
	s := openAt(t, link.Address)
	onLine(t, s)
	link.Cut()
	for began := time.Now(); ; {
		if _, err := s.Read(t.Context(), "r"); err != nil {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("calls go on without a connection")
		}
	}
	link.Forward()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := s.Read(t.Context(), "r"); err == nil {
			break
		} else if time.Since(began) > 10*time.Second {
			t.Fatal(err)
		}
	}
	onLine(t, s)
}

// No server runs the scripts of another: it says that it does not have them.
func TestScriptsAreBoundToTheirServer(t *testing.T) {
	t.Parallel()
	one, other := peer.StartRedis(t, peer.RedisConfig{}), peer.StartRedis(t, peer.RedisConfig{})
	s, elsewhere := openAt(t, one.Address), openAt(t, other.Address)
	mustAcquire(t, s, "r", "a")
	mustAcquire(t, elsewhere, "r", "a")
	here, there := s.bound.Load(), elsewhere.bound.Load()
	if here.acquire.hash == there.acquire.hash {
		t.Fatal("two servers share a script")
	}
	for _, sc := range []script{there.acquire, acquireScript} {
		if known := one.Do("SCRIPT", "EXISTS", sc.hash); known != "0" {
			t.Errorf("SCRIPT EXISTS of a script that is not bound to the server: %s", known)
		}
	}
	// What comes from a binding that is no longer right is bound again.
	s.bound.Store(there)
	if grant := mustAcquire(t, s, "q", "b"); grant.Token == 0 || *s.bound.Load() != *here {
		t.Errorf("the binding is %v", s.bound.Load().acquire.hash)
	}
	if _, err := bind("x' .. redis.call('FLUSHALL') .. '"); err == nil {
		t.Error("any text can be the run_id")
	}
}

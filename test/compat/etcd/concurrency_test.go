//go:build linux

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.etcd.io/etcd/client/v3/leasing"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/client/v3/ordering"
)

func (w *world) session(ttl int) *concurrency.Session {
	w.Helper()
	s, err := concurrency.NewSession(w.client, concurrency.WithTTL(ttl))
	w.must(err)
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// named replaces the lease in a key, which is a server's own business.
func named(key string, s *concurrency.Session, as string) string {
	return strings.ReplaceAll(key, fmt.Sprintf("%x", s.Lease()), as)
}

func TestMutex(t *testing.T) {
	compare(t, func(w *world) {
		ann, bob, eve := w.session(60), w.session(60), w.session(60)
		a, b, e := concurrency.NewMutex(ann, "/locks/m"), concurrency.NewMutex(bob, "/locks/m"), concurrency.NewMutex(eve, "/locks/m")
		w.must(a.Lock(w.ctx))
		w.say("ann has it as %s", named(a.Key(), ann, "ann"))
		w.say("bob: %v", b.TryLock(w.ctx))
		got := make(chan string, 2)
		wait := func(name string, m *concurrency.Mutex) {
			go func() {
				err := m.Lock(w.ctx)
				got <- fmt.Sprint(name, " ", err)
			}()
		}
		wait("bob", b)
		w.waiting("/locks/m", 2)
		wait("eve", e)
		w.waiting("/locks/m", 3)
		held, err := w.client.Txn(w.ctx).If(a.IsOwner()).Then(clientv3.OpPut("guarded", "ann")).Commit()
		w.must(err)
		w.say("ann owns it %v", held.Succeeded)
		w.must(a.Unlock(w.ctx))
		w.say("%s", <-got)
		held, err = w.client.Txn(w.ctx).If(a.IsOwner()).Then(clientv3.OpPut("guarded", "late")).Commit()
		w.must(err)
		w.say("ann owns it %v", held.Succeeded)
		w.tryFor(time.Second, a)
		w.must(bob.Close()) // its session ends, and with it the lock
		w.say("%s", <-got)
		w.must(e.Unlock(w.ctx))
		w.must(a.Lock(w.ctx))
		w.must(a.Unlock(w.ctx))
		w.must(a.Lock(w.ctx)) // the same session may lock again
		left, err := w.client.Get(w.ctx, "/locks/m", clientv3.WithPrefix())
		w.must(err)
		w.say("%d left", left.Count)
	})
}

// tryFor waits for a lock for a moment that is too short.
func (w *world) tryFor(d time.Duration, m *concurrency.Mutex) {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	w.say("for a moment: %v", errors.Is(m.Lock(ctx), context.DeadlineExceeded))
}

// waiting waits until so many have or want a lock.
func (w *world) waiting(name string, n int64) {
	w.Helper()
	for {
		r, err := w.client.Get(w.ctx, name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		w.must(err)
		if r.Count == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestElection(t *testing.T) {
	compare(t, func(w *world) {
		ann, bob := w.session(60), w.session(60)
		a, b := concurrency.NewElection(ann, "el"), concurrency.NewElection(bob, "el")
		_, err := a.Leader(w.ctx)
		w.say("nobody: %v", err)
		seen := a.Observe(w.ctx)
		look := func() {
			select {
			case r := <-seen:
				w.say("observed %q", r.Kvs[0].Value)
			case <-w.ctx.Done():
				w.Fatal("nothing is observed")
			}
		}
		w.must(a.Campaign(w.ctx, "ann"))
		look()
		w.must(a.Proclaim(w.ctx, "ann, again"))
		look()
		won := make(chan error, 1)
		go func() { won <- b.Campaign(w.ctx, "bob") }()
		w.waiting("el", 2)
		r, err := b.Leader(w.ctx)
		w.must(err)
		w.say("leader %q version %d", r.Kvs[0].Value, r.Kvs[0].Version)
		w.must(a.Resign(w.ctx))
		w.say("bob: %v", <-won)
		look()
		w.say("ann proclaims: %v", a.Proclaim(w.ctx, "late"))
		w.must(b.Resign(w.ctx))
		resumed := concurrency.ResumeElection(ann, "el", b.Key(), b.Rev())
		w.say("resumed: %v", resumed.Proclaim(w.ctx, "x"))
	})
}

func TestSTM(t *testing.T) {
	compare(t, func(w *world) {
		for _, pair := range [][2]string{{"from", "100"}, {"to", "0"}} {
			_, err := w.client.Put(w.ctx, pair[0], pair[1])
			w.must(err)
		}
		for _, level := range []concurrency.Isolation{concurrency.SerializableSnapshot, concurrency.Serializable,
			concurrency.RepeatableReads, concurrency.ReadCommitted} {
			_, err := concurrency.NewSTM(w.client, func(s concurrency.STM) error {
				var from, to int
				_, _ = fmt.Sscan(s.Get("from"), &from)
				_, _ = fmt.Sscan(s.Get("to"), &to)
				s.Put("from", fmt.Sprint(from-1))
				s.Put("to", fmt.Sprint(to+1))
				return nil
			}, concurrency.WithIsolation(level), concurrency.WithPrefetch("from", "to"))
			w.must(err)
		}
		r, err := w.client.Get(w.ctx, "", clientv3.WithPrefix())
		w.must(err)
		w.say("%s", kvs(r.Kvs))
	})
}

func TestRecipes(t *testing.T) {
	compare(t, func(w *world) {
		q := recipe.NewQueue(w.client, "queue")
		for _, value := range []string{"1", "2", "3"} {
			w.must(q.Enqueue(value))
		}
		for range 3 {
			value, err := q.Dequeue()
			w.must(err)
			w.say("dequeued %s", value)
		}
		p := recipe.NewPriorityQueue(w.client, "pq")
		w.must(p.Enqueue("low", 5))
		w.must(p.Enqueue("high", 1))
		value, err := p.Dequeue()
		w.must(err)
		w.say("dequeued %s", value)
		barrier := recipe.NewBarrier(w.client, "barrier")
		w.must(barrier.Hold())
		w.say("held twice: %v", barrier.Hold())
		passed := make(chan error, 1)
		go func() { passed <- recipe.NewBarrier(w.client, "barrier").Wait() }()
		w.must(barrier.Release())
		w.say("passed: %v", <-passed)
		ann, bob := w.session(60), w.session(60)
		entered := make(chan error, 2)
		one, two := recipe.NewDoubleBarrier(ann, "double", 2), recipe.NewDoubleBarrier(bob, "double", 2)
		go func() { entered <- one.Enter() }()
		go func() { entered <- two.Enter() }()
		w.say("entered: %v %v", <-entered, <-entered)
		go func() { entered <- one.Leave() }()
		go func() { entered <- two.Leave() }()
		w.say("left: %v %v", <-entered, <-entered)
		r1, r2, wr := recipe.NewRWMutex(ann, "rw"), recipe.NewRWMutex(bob, "rw"), recipe.NewRWMutex(w.session(60), "rw")
		w.must(r1.RLock())
		w.must(r2.RLock())
		locked := make(chan error, 1)
		go func() { locked <- wr.Lock() }()
		w.must(r1.RUnlock())
		w.must(r2.RUnlock())
		w.say("locked for writing: %v", <-locked)
		w.must(wr.Unlock())
	})
}

func TestWrappers(t *testing.T) {
	compare(t, func(w *world) {
		inside := namespace.NewKV(w.client.KV, "ns/")
		_, err := inside.Put(w.ctx, "a", "1")
		w.must(err)
		r, err := inside.Get(w.ctx, "", clientv3.WithPrefix())
		w.must(err)
		w.say("inside %s", kvs(r.Kvs))
		events := namespace.NewWatcher(w.client.Watcher, "ns/").Watch(w.ctx, "a", clientv3.WithRev(1))
		e := <-events
		w.say("inside %s", event(e.Events[0]))
		ordered := ordering.NewKV(w.client.KV, func(clientv3.Op, clientv3.OpResponse, int64) error { return errors.New("went back") })
		for range 3 {
			_, err = ordered.Get(w.ctx, "ns/a")
			w.must(err)
		}
		leased, stop, err := leasing.NewKV(w.client, "leases/")
		w.must(err)
		defer stop()
		for range 3 {
			r, err = leased.Get(w.ctx, "ns/a")
			w.must(err)
			w.say("leased %s", kvs(r.Kvs))
		}
		_, err = leased.Put(w.ctx, "ns/a", "2")
		w.must(err)
		r, err = leased.Get(w.ctx, "ns/a")
		w.must(err)
		w.say("leased %s", kvs(r.Kvs))
	})
}

func TestMaintenance(t *testing.T) {
	compare(t, func(w *world) {
		s, err := w.client.Status(w.ctx, w.endpoints[0])
		w.must(err)
		w.say("version %s, leads itself %v, errors %v", s.Version, s.Leader == s.Header.MemberId && s.Leader != 0, s.Errors)
		m, err := w.client.MemberList(w.ctx)
		w.must(err)
		w.say("%d members, the first is the one that answers %v", len(m.Members), m.Members[0].ID == m.Header.MemberId)
		a, err := w.client.AlarmList(w.ctx)
		w.must(err)
		w.say("%d alarms", len(a.Alarms))
		_, err = w.client.Authenticate(w.ctx, "a", "b")
		w.failed("authenticate", err)
		_, err = w.client.UserList(w.ctx)
		w.differs("users", "%v", err)
		_, err = pb.NewMaintenanceClient(w.client.ActiveConnection()).Hash(w.ctx, &pb.HashRequest{})
		w.differs("hash", "%v", err)
	})
}

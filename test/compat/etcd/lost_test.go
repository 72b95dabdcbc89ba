//go:build linux

package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// insist calls until there is an answer, as programs do.
func (w *world) insist(what string, call func() error) {
	w.Helper()
	var err error
	for range 10 {
		if err = call(); err == nil {
			return
		}
	}
	w.Fatalf("%s: %v", what, err)
}

// keys counts the keys below a name.
func (w *world) keys(name string) int64 {
	w.Helper()
	r, err := w.client.Get(w.ctx, name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	w.must(err)
	return r.Count
}

// A write whose answer is lost is done once: clientv3 does not send it again.
func TestLostAnswersOfWrites(t *testing.T) {
	loseEach(t, func(w *world, lossy *clientv3.Client, name string) {
		kv := func(key string) (version int64) {
			r, err := w.client.Get(w.ctx, name+key)
			w.must(err)
			if len(r.Kvs) > 0 {
				version = r.Kvs[0].Version
			}
			return version
		}
		_, put := lossy.Put(w.ctx, name+"put", "1")
		if v := kv("put"); v != 1 {
			w.Errorf("the put is answered %v, and the key has version %d", put, v)
		}
		_, txn := lossy.Txn(w.ctx).If(clientv3.Compare(clientv3.Version(name+"txn"), "=", 0)).
			Then(clientv3.OpPut(name+"txn", "1")).Commit()
		if v := kv("txn"); v != 1 {
			w.Errorf("the transaction is answered %v, and the key has version %d", txn, v)
		}
		_, deleted := lossy.Delete(w.ctx, name+"put")
		if v := kv("put"); v != 0 {
			w.Errorf("the delete is answered %v, and the key has version %d", deleted, v)
		}
		if _, err := lossy.Get(w.ctx, name+"txn"); err != nil {
			w.Errorf("a read, which clients ask again, fails: %v", err)
		}
	})
}

// clientv3 asks again for a lease whose answer was lost; the one that nobody knows of ends by itself.
func TestLostAnswersOfLeases(t *testing.T) {
	loseEach(t, func(w *world, lossy *clientv3.Client, name string) {
		granted, err := lossy.Grant(w.ctx, 60)
		w.must(err)
		_, put := w.client.Put(w.ctx, name, "", clientv3.WithLease(granted.ID))
		w.must(put)
		kept, err := lossy.KeepAliveOnce(w.ctx, granted.ID)
		w.must(err)
		if kept.TTL != 60 {
			w.Errorf("the keep-alive answers %v", kept)
		}
		left, err := lossy.TimeToLive(w.ctx, granted.ID, clientv3.WithAttachedKeys())
		w.must(err)
		if left.TTL < 50 || len(left.Keys) != 1 {
			w.Errorf("what is left is %v", left)
		}
		// A second revoke, because the answer to the first was lost, finds no lease.
		if _, err := lossy.Revoke(w.ctx, granted.ID); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			w.Errorf("revoked: %v", err)
		}
		if r, err := w.client.Get(w.ctx, name); err != nil || len(r.Kvs) != 0 {
			w.Errorf("after the revoke there is %v, %v", r, err)
		}
	})
}

// Whichever answer is lost, concurrency.Mutex has the lock in the end, once, and gives it back.
func TestLostAnswersOfAMutex(t *testing.T) {
	loseEach(t, func(w *world, lossy *clientv3.Client, name string) {
		other := concurrency.NewMutex(w.session(60), name)
		w.must(other.Lock(w.ctx))
		s, err := concurrency.NewSession(lossy, concurrency.WithTTL(60))
		w.must(err)
		m := concurrency.NewMutex(s, name)
		got := make(chan error, 1)
		go func() {
			var err error
			for range 10 {
				if err = m.Lock(w.ctx); err == nil {
					break
				}
			}
			got <- err
		}()
		w.waiting(name, 2)
		w.must(other.Unlock(w.ctx))
		w.must(<-got)
		held, err := w.client.Txn(w.ctx).If(m.IsOwner()).Commit()
		w.must(err)
		if n := w.keys(name); !held.Succeeded || n != 1 {
			w.Errorf("it has the lock: %v; %d have or want it", held.Succeeded, n)
		}
		if err := other.TryLock(w.ctx); !errors.Is(err, concurrency.ErrLocked) {
			w.Errorf("another one tries: %v", err)
		}
		w.insist("unlock", func() error {
			if err := m.Unlock(w.ctx); !errors.Is(err, concurrency.ErrLockReleased) {
				return err
			}
			return nil
		})
		if n := w.keys(name); n != 0 {
			w.Errorf("%d have or want it after all have given it back", n)
		}
		s.Orphan()
	})
}

// The lock service answers who asks again for the same lease with the same key.
func TestLostAnswersOfTheLockService(t *testing.T) {
	loseEach(t, func(w *world, lossy *clientv3.Client, name string) {
		mine, err := w.client.Grant(w.ctx, 60)
		w.must(err)
		service := v3lockpb.NewLockClient(lossy.ActiveConnection())
		var key []byte
		w.insist("lock", func() error {
			r, err := service.Lock(w.ctx, &v3lockpb.LockRequest{Name: []byte(name), Lease: int64(mine.ID)})
			if err == nil {
				key = r.Key
			}
			return err
		})
		if want := fmt.Sprintf("%s/%x", name, mine.ID); string(key) != want || w.keys(name) != 1 {
			w.Errorf("it has the lock as %s, want %s; %d have or want it", key, want, w.keys(name))
		}
		w.insist("unlock", func() error {
			_, err := service.Unlock(w.ctx, &v3lockpb.UnlockRequest{Key: key})
			return err
		})
		if n := w.keys(name); n != 0 {
			w.Errorf("%d have or want it after all have given it back", n)
		}
	})
}

// The election service, too.
func TestLostAnswersOfTheElectionService(t *testing.T) {
	loseEach(t, func(w *world, lossy *clientv3.Client, name string) {
		mine, err := w.client.Grant(w.ctx, 60)
		w.must(err)
		service := v3electionpb.NewElectionClient(lossy.ActiveConnection())
		var leader *v3electionpb.LeaderKey
		w.insist("campaign", func() error {
			r, err := service.Campaign(w.ctx, &v3electionpb.CampaignRequest{Name: []byte(name), Lease: int64(mine.ID),
				Value: []byte("ann")})
			leader = r.GetLeader()
			return err
		})
		w.insist("proclaim", func() error {
			_, err := service.Proclaim(w.ctx, &v3electionpb.ProclaimRequest{Leader: leader, Value: []byte("again")})
			return err
		})
		w.insist("leader", func() error {
			r, err := service.Leader(w.ctx, &v3electionpb.LeaderRequest{Name: []byte(name)})
			if err == nil && (string(r.Kv.Value) != "again" || r.Kv.CreateRevision != leader.Rev) {
				w.Errorf("the leader is %v, and who campaigned has %v", r.Kv, leader)
			}
			return err
		})
		w.insist("resign", func() error {
			_, err := service.Resign(w.ctx, &v3electionpb.ResignRequest{Leader: leader})
			return err
		})
		if n := w.keys(name); n != 0 {
			w.Errorf("%d are candidates after all have resigned", n)
		}
	})
}

// A watch through three servers, each of which breaks the connection at every fifth answer, misses nothing and shows
// nothing twice: neither events of one key at a time nor those of a transaction, which share a revision.
func TestWatchResumes(t *testing.T) {
	servers, w := cluster(t)
	var endpoints []string
	var proxies []*lossy
	for _, m := range servers.Members {
		p := startLossy(t, m.Address, func(n int) bool { return n%5 == 0 })
		proxies, endpoints = append(proxies, p), append(endpoints, "http://"+p.address)
	}
	began, err := w.client.Put(w.ctx, "resumes", "")
	w.must(err)
	events := w.dial(endpoints...).Watch(w.ctx, "resumes/", clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(began.Header.Revision))
	const rounds = 100
	go func() {
		for i := range rounds {
			if err := w.change(w.ctx, i); err != nil {
				t.Errorf("round %d: %v", i, err)
				return
			}
		}
	}()
	next := 0
	for next < 3*rounds {
		r, ok := <-events
		if !ok || r.Err() != nil {
			t.Fatalf("the watch ended after %d events: %v", next, r.Err())
		}
		for _, e := range r.Events {
			want := fmt.Sprintf("resumes/%d=%d", next%3, next/3)
			if got := fmt.Sprintf("%s=%s", e.Kv.Key, e.Kv.Value); got != want || next >= 3 && e.PrevKv == nil {
				t.Fatalf("event %d is %s, before %v; want %s", next, got, e.PrevKv, want)
			}
			next++
		}
	}
	lost := 0
	for _, p := range proxies {
		lost += p.hasLost()
	}
	if lost == 0 {
		t.Error("no connection was broken")
	}
	t.Logf("%d events, with %d connections broken", next, lost)
}

// change makes three events: one by itself, and two of a transaction.
func (w *world) change(ctx context.Context, round int) error {
	value := fmt.Sprint(round)
	if _, err := w.client.Put(ctx, "resumes/0", value); err != nil {
		return err
	}
	_, err := w.client.Txn(ctx).Then(clientv3.OpPut("resumes/1", value), clientv3.OpPut("resumes/2", value)).Commit()
	return err
}

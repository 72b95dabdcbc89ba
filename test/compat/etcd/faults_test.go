//go:build linux

package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasehold/leasehold/internal/peer"
)

func cluster(t *testing.T) (*peer.Leasehold, *world) {
	t.Helper()
	servers := leasehold(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	w := &world{T: t, name: "leasehold", endpoints: servers.URLs(), ctx: ctx}
	w.client = w.dial(w.endpoints...)
	return servers, w
}

// The leader of the cluster is killed while candidates wait. Whoever has won has still won, and the next one wins when
// it resigns: each with a larger create revision than the one before.
func TestLeaderKilledInAnElection(t *testing.T) {
	servers, w := cluster(t)
	type winner struct {
		name int
		rev  int64
		e    *concurrency.Election
	}
	won := make(chan winner)
	for i := range 3 {
		client := w.dial(w.endpoints...)
		s, err := concurrency.NewSession(client, concurrency.WithTTL(30))
		w.must(err)
		go func() {
			for {
				e := concurrency.NewElection(s, "faults/election")
				if err := e.Campaign(w.ctx, fmt.Sprint("candidate ", i)); err == nil {
					won <- winner{i, e.Rev(), e}
					return
				}
				if w.ctx.Err() != nil {
					return
				}
			}
		}()
	}
	first := <-won
	w.waiting("faults/election", 3)
	servers.Leader().Kill()
	last := first
	for range 2 {
		select {
		case another := <-won:
			t.Fatalf("candidate %d has won, and so has %d", another.name, last.name)
		case <-time.After(time.Second):
		}
		for last.e.Resign(w.ctx) != nil && w.ctx.Err() == nil {
		}
		next := <-won
		if next.rev <= last.rev {
			t.Errorf("the create revision went from %d to %d", last.rev, next.rev)
		}
		last = next
	}
}

// A watch goes on at another server when its own is killed: no event is missing, none comes twice.
func TestWatchGoesOnElsewhere(t *testing.T) {
	servers, w := cluster(t)
	var follower *peer.LeaseholdMember
	leader := servers.Leader()
	for _, m := range servers.Members {
		if m != leader {
			follower = m
		}
	}
	client := w.dial(follower.URL(), leader.URL())
	client.SetEndpoints(follower.URL())
	events := client.Watch(w.ctx, "faults/watch/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	writer := w.dial(leader.URL())
	const n = 200
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range n {
			if i == n/2 {
				client.SetEndpoints(leader.URL(), follower.URL())
				follower.Kill()
			}
			if _, err := writer.Put(w.ctx, fmt.Sprintf("faults/watch/%03d", i), ""); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for seen := 0; seen < n; {
		r, ok := <-events
		if !ok || r.Err() != nil {
			t.Fatalf("the watch ended after %d events: %v", seen, r.Err())
		}
		for _, e := range r.Events {
			if want := fmt.Sprintf("faults/watch/%03d", seen); string(e.Kv.Key) != want {
				t.Fatalf("event %d is about %s, want %s", seen, e.Kv.Key, want)
			}
			seen++
		}
	}
	<-written
}

// A holder that is paused loses its lock when its lease ends, and what it then writes under it is refused.
func TestPausedHolder(t *testing.T) {
	_, w := cluster(t)
	paused, err := concurrency.NewSession(w.client, concurrency.WithTTL(1))
	w.must(err)
	old := concurrency.NewMutex(paused, "faults/lock")
	w.must(old.Lock(w.ctx))
	paused.Orphan() // it renews no more
	next := concurrency.NewMutex(w.session(60), "faults/lock")
	w.must(next.Lock(w.ctx))
	late, err := w.client.Txn(w.ctx).If(old.IsOwner()).Then(clientv3.OpPut("faults/data", "late")).Commit()
	w.must(err)
	now, err := w.client.Txn(w.ctx).If(next.IsOwner()).Then(clientv3.OpPut("faults/data", "now")).Commit()
	w.must(err)
	if late.Succeeded || !now.Succeeded {
		t.Errorf("the paused holder could write: %v, the new one: %v", late.Succeeded, now.Succeeded)
	}
}

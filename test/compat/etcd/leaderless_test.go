//go:build linux

package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasehold/leasehold/internal/peer"
)

// A client that asks for it is told when there is no leader: its watch ends with that reason, and its keep-alives end,
// long before the lease does. Other watches and sessions stay, and go on when there is a leader again.
func TestNoLeader(t *testing.T) {
	type member interface {
		URL() string
		Pause()
		Resume()
	}
	worlds := map[string]func(t *testing.T) []member{
		"etcd": func(t *testing.T) (all []member) {
			for _, m := range peer.StartEtcd(t, peer.EtcdConfig{Members: 3}).Members {
				all = append(all, m)
			}
			return all
		},
		"leasehold": func(t *testing.T) (all []member) {
			for _, m := range leasehold(t, 3).Members {
				all = append(all, m)
			}
			return all
		},
	}
	for name, start := range worlds {
		t.Run(name, func(t *testing.T) {
			members := start(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			w := &world{T: t, name: name, ctx: ctx}
			w.client = w.dial(members[0].URL())
			strict := w.client.Watch(clientv3.WithRequireLeader(ctx), "k", clientv3.WithCreatedNotify())
			lasting := w.client.Watch(ctx, "k", clientv3.WithCreatedNotify())
			for _, events := range []clientv3.WatchChan{strict, lasting} {
				if r := <-events; !r.Created {
					t.Fatalf("a watch begins with %v", r)
				}
			}
			s, err := concurrency.NewSession(w.client, concurrency.WithTTL(600))
			w.must(err)
			defer s.Orphan()
			kept, err := w.client.KeepAlive(clientv3.WithRequireLeader(ctx), s.Lease())
			w.must(err)
			<-kept
			began := time.Now()
			for _, m := range members[1:] {
				m.Pause()
			}
			r := <-strict
			if !errors.Is(r.Err(), rpctypes.ErrNoLeader) {
				t.Errorf("the watch ends with %v, %v", r, r.Err())
			}
			for range kept {
			}
			t.Logf("both end %v after most servers were paused", time.Since(began))
			for _, m := range members[1:] {
				m.Resume()
			}
			for {
				if _, err := w.client.Put(ctx, "k", "later"); err == nil {
					break
				} else if ctx.Err() != nil {
					t.Fatal(err)
				}
			}
			if r := <-lasting; r.Err() != nil || len(r.Events) == 0 || string(r.Events[0].Kv.Value) != "later" {
				t.Errorf("the other watch goes on with %v, %v", r.Events, r.Err())
			}
			select {
			case <-s.Done():
				t.Error("the session ended, although it asked for no leader")
			default:
			}
		})
	}
}

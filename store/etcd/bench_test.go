//go:build linux

package etcd_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// durable is an etcd that syncs its disk, as it does where it matters.
var durable = peer.EtcdConfig{Args: []string{"--unsafe-no-fsync=false"}}

// BenchmarkBeside compares an acquire and its release with the peer library on the same kind of server: with
// one session for all mutexes, which is its fastest form, as they are all lost at once; and with a session for
// each, as each lease has its own.
func BenchmarkBeside(b *testing.B) {
	for _, callers := range []int{1, 16} {
		for name, start := range map[string]func(*testing.B) func(n int64) error{
			"store": cycles, "mutex": func(b *testing.B) func(int64) error { return mutexes(b, false) },
			"mutex, own session": func(b *testing.B) func(int64) error { return mutexes(b, true) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				cycle := start(b)
				var n atomic.Int64
				b.ResetTimer()
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
							if err := cycle(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

func cycles(b *testing.B) func(n int64) error {
	s := open(b, peer.StartEtcd(b, durable).Endpoints()...)
	return func(n int64) error {
		ref := store.Ref{Resource: fmt.Sprint("bench/", n), ID: fmt.Sprint("id-", n)}
		r := store.Request{Resource: ref.Resource, ID: ref.ID, Holder: "bench", TTL: 30 * time.Second}
		if _, err := s.Acquire(b.Context(), r); err != nil {
			return err
		}
		return s.Release(b.Context(), store.ReleaseRequest{Leases: []store.Ref{ref}})
	}
}

func mutexes(b *testing.B, own bool) func(n int64) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: peer.StartEtcd(b, durable).Endpoints()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	shared, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		b.Fatal(err)
	}
	return func(n int64) (err error) {
		session := shared
		if own {
			if session, err = concurrency.NewSession(client, concurrency.WithTTL(30)); err != nil {
				return err
			}
			defer func() { _ = session.Close() }()
		}
		m := concurrency.NewMutex(session, fmt.Sprint("bench/", n))
		if err := m.Lock(b.Context()); err != nil {
			return err
		}
		return m.Unlock(b.Context())
	}
}

func BenchmarkRenew(b *testing.B) {
	s := open(b, peer.StartEtcd(b, durable).Endpoints()...)
	var refs []store.Ref
	for i := range 100 {
		id := fmt.Sprint("id-", i)
		refs = append(refs, store.Ref{Resource: "bench/" + id, ID: id})
		r := store.Request{Resource: "bench/" + id, ID: id, Holder: "bench", TTL: 10 * time.Minute}
		if _, err := s.Acquire(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		renewals, err := s.Renew(b.Context(), refs...)
		if err != nil || renewals[99].Ended != nil {
			b.Fatal(err, renewals[99].Ended)
		}
	}
}

// BenchmarkStore has the figures of docs/stores.
func BenchmarkStore(b *testing.B) {
	server := peer.StartEtcd(b, peer.EtcdConfig{})
	storetest.Benchmark(b, storetest.Config{
		Open: func(t testing.TB) store.Store { return open(t, server.Endpoints()...) }, TTL: 2 * time.Second,
	})
}

//go:build linux

package etcd_test

import (
	"fmt"
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

func BenchmarkAcquireRelease(b *testing.B) {
	s := open(b, peer.StartEtcd(b, durable).Endpoints()...)
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := fmt.Sprint("id-", n.Add(1))
			ref := store.Ref{Resource: "bench/" + id, ID: id}
			r := store.Request{Resource: ref.Resource, ID: id, Holder: "bench", TTL: 30 * time.Second}
			if _, err := s.Acquire(b.Context(), r); err != nil {
				b.Error(err)
				return
			}
			if err := s.Release(b.Context(), store.ReleaseRequest{Leases: []store.Ref{ref}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The peer library on the same server, with one session for all mutexes, which is its fastest form: they
// are all lost at once.
func BenchmarkConcurrencyMutex(b *testing.B) { mutexes(b, false) }

// A session for each mutex is what a lease for each hold compares with.
func BenchmarkConcurrencyMutexOwnSession(b *testing.B) { mutexes(b, true) }

func mutexes(b *testing.B, own bool) {
	client, err := clientv3.New(clientv3.Config{Endpoints: peer.StartEtcd(b, durable).Endpoints()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			session := session
			if own {
				var err error
				if session, err = concurrency.NewSession(client, concurrency.WithTTL(30)); err != nil {
					b.Error(err)
					return
				}
			}
			m := concurrency.NewMutex(session, fmt.Sprint("bench/", n.Add(1)))
			if err := m.Lock(b.Context()); err != nil {
				b.Error(err)
				return
			}
			if err := m.Unlock(b.Context()); err != nil {
				b.Error(err)
				return
			}
			if own {
				_ = session.Close()
			}
		}
	})
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

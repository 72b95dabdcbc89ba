//go:build linux

package consul_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func openURL(b *testing.B) store.Store {
	b.Helper()
	s, err := store.Open(b.Context(), "consul://"+peer.StartConsul(b, short).Members[0].Address, store.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func BenchmarkAcquireRelease(b *testing.B) {
	s := openURL(b)
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

// lock runs the peer library on the same server.
func lock(b *testing.B, session func(*api.Client) string) {
	client := driver(b, peer.StartConsul(b, short).Members[0].Address, "")
	id := session(client)
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l, err := client.LockOpts(&api.LockOptions{Key: fmt.Sprint("bench/", n.Add(1)), Session: id,
				SessionTTL: "30s"})
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := l.Lock(nil); err != nil {
				b.Error(err)
				return
			}
			if err := l.Unlock(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// A session for each lock is its default.
func BenchmarkConsulLock(b *testing.B) { lock(b, func(*api.Client) string { return "" }) }

// One session for all locks is its fastest form; a lock cannot be lost alone then.
func BenchmarkConsulLockOneSession(b *testing.B) {
	lock(b, func(c *api.Client) string {
		id, _, err := c.Session().CreateNoChecks(&api.SessionEntry{TTL: "1h"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		return id
	})
}

func BenchmarkRenew(b *testing.B) {
	s := openURL(b)
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
	server := peer.StartConsul(b, short)
	storetest.Benchmark(b, storetest.Config{
		Open: func(t testing.TB) store.Store { return open(t, server.Members[0].Address) }, TTL: 2 * time.Second,
	})
}

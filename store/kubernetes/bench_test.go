//go:build linux

package kubernetes

import (
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	c := configOf(b, peer.StartKubernetes(b))
	storetest.Benchmark(b, storetest.Config{
		Open: func(t testing.TB) store.Store { return openWith(t, c) }, TTL: 2 * time.Second,
	})
}

// A Lease that exists, which is what most programs find: two writes, where an elector also reads twice.
func BenchmarkKnownLease(b *testing.B) {
	s := openWith(b, configOf(b, peer.StartKubernetes(b)))
	release(b, s, "known", "nobody")
	for n := 0; b.Loop(); n++ {
		id := strconv.Itoa(n)
		acquire(b, s, "known", id)
		release(b, s, "known", id)
	}
}

//go:build linux

package kubernetes

import (
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

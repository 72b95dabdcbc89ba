//go:build linux

package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// BenchmarkAcquireRelease acquires and releases a resource of its own for each caller.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := newStore(b, func(c *Config) { c.URL += fmt.Sprint("&pool_max_conns=", callers) })
			var caller atomic.Int64
			b.SetParallelism((callers + 1) / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				resource := fmt.Sprint(caller.Add(1))
				for i := 0; pb.Next(); i++ {
					id := fmt.Sprint(i)
					acquire(b, s, request(resource, id))
					release(b, s, resource, id)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}

// BenchmarkRenew renews 100 leases with one call.
func BenchmarkRenew(b *testing.B) {
	s := newStore(b)
	var refs []store.Ref
	for i := range 100 {
		r := request(fmt.Sprint(i), "id")
		acquire(b, s, r)
		refs = append(refs, store.Ref{Resource: r.Resource, ID: r.ID})
	}
	for b.Loop() {
		renewals, err := s.Renew(b.Context(), refs...)
		if err != nil || renewals[99].Remaining != time.Minute {
			b.Fatal(renewals, err)
		}
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "renewals/s")
}

// BenchmarkHandOver measures from a release to the grant of a waiter that waited.
func BenchmarkHandOver(b *testing.B) {
	s := newStore(b)
	acquire(b, s, request("a", "-1"))
	for i := 0; b.Loop(); i++ {
		r := request("a", fmt.Sprint(i))
		r.Wait = time.Minute
		granted := make(chan struct{})
		go func() {
			defer close(granted)
			acquire(b, s, r)
		}()
		b.StopTimer()
		waitFor(b, func() bool { state, err := s.Read(b.Context(), "a"); return err == nil && state.Waiting == 1 })
		b.StartTimer()
		release(b, s, "a", fmt.Sprint(i-1))
		<-granted
	}
}

// BenchmarkStore has the figures of docs/stores.
func BenchmarkStore(b *testing.B) {
	p := peer.StartPostgres(b, peer.PostgresConfig{Args: []string{"-c", "fsync=on"}})
	storetest.Benchmark(b, suite(b, p, p.URL()))
}

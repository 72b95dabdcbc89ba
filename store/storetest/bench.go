package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Benchmark measures a store by the four figures of docs/stores: how many leases are acquired and
// released in a second, how many are renewed, how long it takes from a release to the next grant, and
// how late a lease is free whose holder died.
func Benchmark(b *testing.B, c Config) {
	b.Run("acquire+release", func(b *testing.B) { benchmarkAcquire(newKit(b, c), b, 1) })
	b.Run("acquire+release/16", func(b *testing.B) { benchmarkAcquire(newKit(b, c), b, 16) })
	b.Run("renew/100", func(b *testing.B) { benchmarkRenew(newKit(b, c), b) })
	b.Run("hand-over", func(b *testing.B) { benchmarkHandOver(newKit(b, c), b) })
	b.Run("take-over", func(b *testing.B) { benchmarkTakeOver(newKit(b, c), b) })
}

// benchmarkAcquire acquires and releases resources that nobody wants, by a number of callers.
func benchmarkAcquire(k *kit, b *testing.B, callers int) {
	k.TTL = max(k.TTL, min(time.Minute, k.features.MaxTTL))
	var n atomic.Int64
	cycle := func() {
		ref := k.ref(fmt.Sprint("r", n.Add(1)), fmt.Sprint(n.Add(1)))
		k.acquire(ref)
		k.release(ref)
	}
	began := time.Now()
	if callers == 1 {
		for b.Loop() {
			cycle()
		}
	} else {
		b.SetParallelism(callers)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				cycle()
			}
		})
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "cycles/s")
}

// benchmarkRenew renews a hundred leases by one call.
func benchmarkRenew(k *kit, b *testing.B) {
	k.TTL = max(k.TTL, min(time.Minute, k.features.MaxTTL))
	const many = 100
	var refs []store.Ref
	for i := range many {
		refs = append(refs, k.ref(fmt.Sprint("r", i), fmt.Sprint(i)))
		k.acquire(refs[i])
	}
	began := time.Now()
	for b.Loop() {
		answers, err := k.store.Renew(b.Context(), refs...)
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range answers {
			if a.Err != nil || a.Ended != nil {
				b.Fatalf("a lease was not renewed: %+v", a)
			}
		}
	}
	b.ReportMetric(float64(b.N*many)/time.Since(began).Seconds(), "renewals/s")
}

// benchmarkHandOver measures from the release of a holder to the grant of one who waits, on another
// handle.
func benchmarkHandOver(k *kit, b *testing.B) {
	k.TTL = max(k.TTL, min(time.Minute, k.features.MaxTTL))
	other := k.second()
	var total time.Duration
	for n := 0; b.Loop(); n++ {
		resource := fmt.Sprint("r", n)
		holder, waiter := k.ref(resource, fmt.Sprint("a", n)), k.ref(resource, fmt.Sprint("b", n))
		k.acquire(holder)
		granted := k.waits(other, waiter)
		k.inQueue(resource, waiter)
		began := time.Now()
		k.release(holder)
		total += (<-granted).Sub(began)
		k.release(waiter)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N)/1000, "ms/hand-over")
}

// benchmarkTakeOver measures how long after its TTL the lease of a dead holder is granted to one who
// waits.
func benchmarkTakeOver(k *kit, b *testing.B) {
	other := k.second()
	var late time.Duration
	rounds := min(b.N, 5) // each takes a TTL
	for n := range rounds {
		resource := fmt.Sprint("r", n)
		holder, waiter := k.ref(resource, fmt.Sprint("a", n)), k.ref(resource, fmt.Sprint("b", n))
		began := time.Now()
		k.acquire(holder)
		granted := <-k.waits(other, waiter)
		late += granted.Sub(began) - k.TTL
		k.release(waiter)
	}
	b.ReportMetric(float64(late.Microseconds())/float64(rounds)/1000, "ms/late")
}

// waits lets one wait for a resource on another handle. The channel has when it was granted.
func (k *kit) waits(s store.Store, ref store.Ref) <-chan time.Time {
	granted := make(chan time.Time, 1)
	r := k.request(ref)
	r.Wait = 10 * (k.TTL + k.Late + time.Second)
	go func() {
		if _, err := k.askOf(s, r); err != nil {
			k.Errorf("%s was not granted: %v", ref.Resource, err)
		}
		granted <- time.Now()
	}()
	return granted
}

// inQueue returns when a waiter has been seen in the queue, or after a while where queues are not
// shown.
func (k *kit) inQueue(resource string, waiter store.Ref) {
	for range 50 {
		seen, err := k.store.Read(k.Context(), waiter.Resource)
		if err != nil {
			k.Fatalf("%s cannot be read: %v", resource, err)
		}
		if seen.Waiting > 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

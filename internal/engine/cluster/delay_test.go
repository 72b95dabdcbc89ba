package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// The benchmarks here measure how long somebody else's work keeps a caller waiting.
// They report the slowest and not the mean, which is what a holder fears.

// fill acquires n leases, many at a time.
func fill(b *testing.B, e *Engine, n int, ttl func(i int) time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	const callers = 1024
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				name := fmt.Sprintf("fill/resource-%07d", i)
				_, err := e.Do(context.Background(), &core.Acquire{Namespace: "default", Resource: name, ID: name, Holder: "worker-7", TTL: ttl(i)})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// renewals renews one lease again and again until stop is closed, and returns how
// long each took, sorted.
func renewals(b *testing.B, e *Engine, id string, stop <-chan struct{}) (took []time.Duration) {
	b.Helper()
	for !isClosed(stop) {
		began := time.Now()
		if _, err := e.Do(context.Background(), &core.Renew{Namespace: "default", ID: id}); err != nil {
			b.Error(err)
			return
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

func report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		b.Fatal("nothing was measured")
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)*99/100]), name+"-p99-ms")
	b.ReportMetric(ms(took[len(took)-1]), name+"-max-ms")
}

// quiet measures for a while without anything else going on, for comparison.
func quiet(b *testing.B, e *Engine, id string) {
	b.Helper()
	stop := make(chan struct{})
	time.AfterFunc(2*time.Second, func() { close(stop) })
	report(b, "quiet", renewals(b, e, id, stop))
}

// A renewal while a snapshot of a million leases is written.
func BenchmarkSnapshotDelay(b *testing.B) {
	e, err := Start(context.Background(), Config{Dir: b.TempDir(), SegmentBytes: DefaultSegmentBytes, SnapshotEvery: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	fill(b, e, 1_000_000, func(int) time.Duration { return time.Hour })
	acquire(b, e, "r")
	for b.Loop() {
		quiet(b, e, "id-r")
		stop := make(chan struct{})
		var measured sync.WaitGroup
		var took []time.Duration
		measured.Go(func() { took = renewals(b, e, "id-r", stop) })
		began := time.Now()
		before := snapshotNow(b, e)
		for snapshots(b, e) == before {
			time.Sleep(10 * time.Millisecond)
		}
		b.ReportMetric(time.Since(began).Seconds(), "snapshot-s")
		close(stop)
		measured.Wait()
		report(b, "snapshot", took)
	}
}

// snapshotNow makes the node take a snapshot with its next entry, and returns how
// many there were.
func snapshotNow(b *testing.B, e *Engine) (before uint64) {
	b.Helper()
	err := e.Read(context.Background(), func(core.View) { // in the node's own goroutine
		before = e.node.Statistics().Snapshots
		e.node.SnapshotNext()
	})
	if err != nil {
		b.Fatal(err)
	}
	return before
}

func snapshots(b *testing.B, e *Engine) (n uint64) {
	b.Helper()
	if err := e.Read(context.Background(), func(core.View) { n = e.node.Statistics().Snapshots }); err != nil {
		b.Fatal(err)
	}
	return n
}

// A renewal while a hundred thousand leases end at once.
func BenchmarkExpiryStormDelay(b *testing.B) {
	e := benchEngine(b)
	acquire(b, e, "r")
	for b.Loop() {
		quiet(b, e, "id-r")
		end := time.Now().Add(20 * time.Second)
		fill(b, e, 100_000, func(int) time.Duration { return time.Until(end) })
		time.Sleep(time.Until(end) - 100*time.Millisecond)
		stop := make(chan struct{})
		var measured sync.WaitGroup
		var took []time.Duration
		measured.Go(func() { took = renewals(b, e, "id-r", stop) })
		for leases(b, e) > 1 {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(time.Since(end).Milliseconds()), "all-ended-after-ms")
		close(stop)
		measured.Wait()
		report(b, "storm", took)
	}
}

func leases(b *testing.B, e *Engine) (n int) {
	b.Helper()
	if err := e.Read(context.Background(), func(v core.View) { n = v.Counts().Leases }); err != nil {
		b.Fatal(err)
	}
	return n
}

// How late a lease ends after its TTL, as a watcher sees it. It must never be early.
func BenchmarkExpiryLateness(b *testing.B) {
	e := benchEngine(b)
	var late []time.Duration
	n := 0
	for b.Loop() {
		n++
		const ttl = 100 * time.Millisecond
		id := fmt.Sprint("id", n)
		ended, forget := e.Feed().Await("default", id)
		sent := time.Now()
		_, err := e.Do(context.Background(), &core.Acquire{Namespace: "default", Resource: "late", ID: id, Holder: "h", TTL: ttl})
		if err != nil {
			b.Fatal(err)
		}
		answered := time.Now()
		<-ended // the grant itself
		forget()
		ended, forget = e.Feed().Await("default", id)
		<-ended
		forget()
		if early := ttl - time.Since(sent); early > 0 {
			b.Fatalf("it ended %v early", early)
		}
		late = append(late, time.Since(answered)-ttl)
	}
	slices.Sort(late)
	report(b, "late", late)
}

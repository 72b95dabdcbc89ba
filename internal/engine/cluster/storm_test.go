package cluster

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// A hundred thousand leases end at once while fifty others renew. It measures how late the
// last of them ends, and the slowest renewal.
func BenchmarkExpiryStormUnderLoad(b *testing.B) {
	e := benchEngine(b)
	for i := range 50 {
		acquire(b, e, fmt.Sprint("r", i))
	}
	for b.Loop() {
		end := time.Now().Add(20 * time.Second)
		fill(b, e, 100_000, func(int) time.Duration { return time.Until(end) })
		time.Sleep(time.Until(end) - 100*time.Millisecond)
		stop := make(chan struct{})
		var measured sync.WaitGroup
		took := make([][]time.Duration, 50)
		for i := range took {
			measured.Go(func() { took[i] = renewals(b, e, fmt.Sprint("id-r", i), stop) })
		}
		for leases(b, e) > 50 {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(time.Since(end).Milliseconds()), "all-ended-after-ms")
		close(stop)
		measured.Wait()
		all := slices.Concat(took...)
		slices.Sort(all)
		report(b, "storm", all)
	}
}

package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/testtime"
)

// BenchmarkExpireTogether ends 100,000 leases at one moment, by ticks alone. The figure to look at
// is what one end costs in processor time.
func BenchmarkExpireTogether(b *testing.B) {
	const leases = 100_000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	var took time.Duration
	entries := 0
	for b.Loop() {
		b.StopTimer()
		t := &town{state: core.NewAt(core.NewestLevel), chance: rand.New(rand.NewPCG(1, 1))}
		for i := range leases {
			n := i%16*leases/16 + i/16 // as if 16 clients took a part each
			t.do(&core.Acquire{
				Namespace: leasehold.DefaultNamespace, Resource: fmt.Sprintf("reports/%08d", n),
				ID: fmt.Sprintf("%08x%016x", i/10, t.chance.Uint64()), Holder: fmt.Sprintf("worker-%d", i%1000),
				TTL: time.Hour - t.now,
			})
			if i%64 == 63 { // that were acquired together
				t.now += time.Millisecond
			}
		}
		runtime.GC()
		t.now = time.Hour
		b.StartTimer()
		began := testtime.CPU()
		for t.state.DueBy(stampOf(t.now)) {
			t.apply(&core.Tick{})
			entries++
		}
		took += testtime.CPU() - began
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/leases, "cpu-ns/end")
	b.ReportMetric(float64(entries)/float64(b.N), "entries")
}

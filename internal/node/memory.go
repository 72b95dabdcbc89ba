package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How much garbage there may be before it is collected, in percent of what is alive. Collecting less often makes
// commands cheaper, and costs memory: so it is generous for as long as that is little in all. With Go's own 100,
// a million leases, half a gigabyte, would take 1.3.
const (
	leastGarbage = 60
	mostGarbage  = 400
	smallGarbage = 192 << 20 // bytes that are little
)

// garbageFor returns the percentage for a heap of which so many bytes are alive.
func garbageFor(live uint64) int {
	return int(min(max(leastGarbage, 100*smallGarbage/max(live, 1)), mostGarbage))
}

var pacing sync.Once

// tuneMemory comes after the start, which would take longer, and gives back what that
// took. It leaves alone what somebody set with GOGC.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		pacing.Do(func() { pace(0) })
	}
	debug.FreeOSMemory()
}

// A sentinel is garbage, so that its cleanup runs after the next collection. It has a pointer, and is collected by
// itself.
type sentinel struct{ _ [4]*sentinel }

// pace sets the percentage by what the last collection found alive, and does so again after the next. The
// argument is what it was set to before: to set it stops everything for a moment, so small changes are left.
func pace(before int) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	percent := garbageFor(sample[0].Value.Uint64())
	if percent > before+before/8 || percent < before-before/8 {
		debug.SetGCPercent(percent)
		before = percent
	}
	runtime.AddCleanup(new(sentinel), pace, before)
}

package node

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsGenerousOnlyWhileTheHeapIsSmall(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 48 << 20: 400, 96 << 20: 200, 192 << 20: 100,
		320 << 20: 60, 600 << 20: 60, 1 << 40: 60} {
		if got := garbageFor(live); got != want {
			t.Errorf("%d MiB alive: %d %%, want %d", live>>20, got, want)
		}
	}
	for live := uint64(0); live < 2<<30; live += 1 << 20 {
		most := max(live*leastGarbage/100, smallGarbage) + live/100 // percent are whole
		if extra := live * uint64(garbageFor(live)) / 100; extra > most {
			t.Fatalf("%d MiB alive may have %d MiB of garbage", live>>20, extra>>20)
		}
	}
}

// The percentage follows the heap, up and down.
func TestGarbageFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "")
	tuneMemory()
	pace(0)
	reaches := func(want func(int) bool) {
		t.Helper()
		for range 500 {
			runtime.GC()
			percent := debug.SetGCPercent(100)
			debug.SetGCPercent(percent)
			if want(percent) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Error("the percentage does not follow")
	}
	reaches(func(percent int) bool { return percent == mostGarbage })
	large := make([]byte, 256<<20)
	reaches(func(percent int) bool { return percent < 100 })
	runtime.KeepAlive(large)
	large = nil
	reaches(func(percent int) bool { return percent == mostGarbage })
}

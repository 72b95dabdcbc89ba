//go:build !race

package kernel

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

// TestMemoryOfALease holds a lease to what it may cost beside its strings: a million of
// them should fit where a program has half a gigabyte. History is not counted, which
// has a bound of its own. (The race detector takes memory too, and is left out.)
func TestMemoryOfALease(t *testing.T) {
	const leases, most = 100000, 450
	ids, paths := make([]string, leases), make([]string, leases)
	for i := range leases {
		ids[i], paths[i] = fmt.Sprintf("%026d", i*7919%leases), fmt.Sprintf("reports/%07d", i)
	}
	for name, bind := range map[string]func(*Acquire){
		"by ttl":     func(a *Acquire) { a.TTL = time.Hour },
		"by session": func(a *Acquire) { a.Session = "s" + a.ID[22:] },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			s := newState()
			for i := range leases / 10 {
				apply(t, s, 0, &OpenSession{Namespace: "default", ID: fmt.Sprintf("s%04d", i), TTL: time.Hour})
			}
			for i := range leases {
				a := &Acquire{Namespace: "default", Resource: paths[i], ID: ids[i], Holder: "worker"}
				bind(a)
				apply(t, s, 0, a)
			}
			forgetHistory(s)
			if each := (heap() - before) / leases; each > most {
				t.Errorf("a lease takes %d bytes, and should take %d at most", each, most)
			}
			runtime.KeepAlive(s)
		})
	}
	runtime.KeepAlive(ids)
	runtime.KeepAlive(paths)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func forgetHistory(s *State) {
	s.last.events = nil
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.history = fifo[*leasehold.Event]{}
		return true
	})
}

package server

import (
	"runtime"
	"testing"
)

// What an idle connection costs in a crowd, server and client together.
func BenchmarkIdle(b *testing.B) {
	s := newBench(Config{})
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := held()
	for range b.N {
		s.dial(b, b.Context())
	}
	b.ReportMetric(float64(held()-before)/float64(b.N), "B/conn")
}

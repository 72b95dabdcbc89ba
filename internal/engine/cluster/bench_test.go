package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// BenchmarkDo measures synced commands per second at several numbers of callers.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("renew/callers=%d", callers), func(b *testing.B) {
			e := benchEngine(b)
			for i := range callers {
				acquire(b, e, fmt.Sprint("r", i))
			}
			spread(b, callers, func(i int) error {
				_, err := e.Do(context.Background(), &core.Renew{Namespace: "default", ID: fmt.Sprint("id-r", i)})
				return err
			})
		})
		b.Run(fmt.Sprintf("cycle/callers=%d", callers), func(b *testing.B) {
			e := benchEngine(b)
			var n atomic.Int64
			origin := engine.WithOrigin(context.Background(), leasehold.Origin{Address: "127.0.0.1:50000", Door: "native"})
			spread(b, callers, func(i int) error {
				id := fmt.Sprint("id-", n.Add(1))
				_, err := e.Do(origin, &core.Acquire{Namespace: "default", Resource: fmt.Sprint("r", i), ID: id, Holder: "h", TTL: time.Minute})
				if err == nil {
					_, err = e.Do(origin, &core.Release{Namespace: "default", ID: id})
				}
				return err
			})
		})
	}
}

func BenchmarkRead(b *testing.B) {
	e := benchEngine(b)
	acquire(b, e, "r")
	spread(b, 64, func(int) error {
		return e.Read(context.Background(), func(v core.View) { v.Status("default", "r", 0) })
	})
}

func benchEngine(b *testing.B) *Engine {
	b.Helper()
	e, err := Start(context.Background(), Config{Dir: b.TempDir(), SegmentBytes: DefaultSegmentBytes, JournalBytes: audit.DefaultBytes})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

func acquire(tb testing.TB, e *Engine, path string) {
	tb.Helper()
	_, err := e.Do(context.Background(), &core.Acquire{Namespace: "default", Resource: path, ID: "id-" + path, Holder: "h", TTL: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
}

// spread does b.N things with so many callers at once.
func spread(b *testing.B, callers int, do func(caller int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

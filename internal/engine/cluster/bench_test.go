package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/id"
)

// BenchmarkDo measures synced commands of several callers, who wait for each answer.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("renew/callers=%d", callers), func(b *testing.B) {
			e := benchEngine(b)
			for i := range callers {
				acquire(b, e, fmt.Sprint("r", i))
			}
			spread(b, e, callers, func(i int) error {
				_, err := e.Do(context.Background(), &core.Renew{Namespace: "default", ID: fmt.Sprint("id-r", i)})
				return err
			})
		})
		b.Run(fmt.Sprintf("cycle/callers=%d", callers), func(b *testing.B) {
			e := benchEngine(b)
			spread(b, e, callers, func(i int) error {
				take, give := cycle(i)
				_, err := e.Do(benchOrigin, take)
				if err == nil {
					_, err = e.Do(benchOrigin, give)
				}
				return err
			})
		})
	}
}

// BenchmarkSubmit measures synced commands that a door reads from its connections, hands over together, and awaits
// before it reads the next.
func BenchmarkSubmit(b *testing.B) {
	for _, size := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("renew/batch=%d", size), func(b *testing.B) {
			e := benchEngine(b)
			for i := range size {
				acquire(b, e, fmt.Sprint("r", i))
			}
			d := newBatch(b, e, size)
			measure(b, e, func() {
				for n := 0; n < b.N; n += size {
					for i := range size {
						d.batch[i].Command = &core.Renew{Namespace: "default", ID: d.names[i]}
					}
					d.submit()
				}
			})
		})
		b.Run(fmt.Sprintf("cycle/batch=%d", size), func(b *testing.B) {
			e := benchEngine(b)
			d := newBatch(b, e, size)
			gives := make([]core.Command, size)
			measure(b, e, func() {
				for n := 0; n < b.N; n += size {
					for i := range size {
						d.batch[i].Command, gives[i] = cycle(i)
					}
					d.submit()
					for i := range size {
						d.batch[i].Command = gives[i]
					}
					d.submit()
				}
			})
		})
	}
}

// A batch is submitted again and again, as the commands of a connection are.
type benchBatch struct {
	engine *Engine
	batch  []engine.Submission
	names  []string
	left   atomic.Int64
	done   chan struct{}
}

func newBatch(b *testing.B, e *Engine, size int) *benchBatch {
	d := &benchBatch{engine: e, done: make(chan struct{}, 1)}
	answer := func(_ core.Answer, err error) {
		if err != nil {
			b.Error(err)
		}
		if d.left.Add(-1) == 0 {
			d.done <- struct{}{}
		}
	}
	for i := range size {
		d.batch = append(d.batch, engine.Submission{Ctx: benchOrigin, Done: answer})
		d.names = append(d.names, fmt.Sprint("id-r", i))
	}
	return d
}

func (d *benchBatch) submit() {
	d.left.Store(int64(len(d.batch)))
	d.engine.Submit(d.batch)
	<-d.done
}

var benchOrigin = engine.WithOrigin(context.Background(),
	leasehold.Origin{Address: "127.0.0.1:50000", Door: "native"})

var benchNames = func() (names [1024]string) {
	for i := range names {
		names[i] = fmt.Sprintf("jobs/nightly-%d", i)
	}
	return names
}()

// cycle returns the commands of one hold. Together they and the id are 3 allocations, which a door makes too.
func cycle(i int) (*core.Acquire, *core.Release) {
	name := id.New()
	return &core.Acquire{Namespace: "default", Resource: benchNames[i], ID: name, Holder: "worker-7", TTL: time.Minute},
		&core.Release{Namespace: "default", ID: name}
}

func BenchmarkRead(b *testing.B) {
	e := benchEngine(b)
	acquire(b, e, "r")
	spread(b, e, 64, func(int) error {
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
func spread(b *testing.B, e *Engine, callers int, do func(caller int) error) {
	measure(b, e, func() {
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
	})
}

// measure reports what b.N things cost besides time: on a machine that others use too, the time of the
// processor says more than that of the clock.
func measure(b *testing.B, e *Engine, do func()) {
	before, cpu := counts(b, e), processorTime()
	b.ReportAllocs()
	b.ResetTimer()
	do()
	b.StopTimer()
	after := counts(b, e)
	b.ReportMetric(float64((processorTime()-cpu).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	if entries := after.Entries - before.Entries; entries > 0 {
		b.ReportMetric(float64(after.Commands-before.Commands)/float64(entries), "commands/sync")
	}
}

// counts reads the node's statistics.
func counts(b *testing.B, e *Engine) (s replica.Statistics) {
	b.Helper()
	if err := e.Read(context.Background(), func(core.View) { s = e.node.Statistics() }); err != nil {
		b.Fatal(err)
	}
	return s
}

// processorTime returns the time that this process has had of all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

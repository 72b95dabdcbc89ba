package cluster

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/enginetest"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Small segments, so that tests meet their ends too; set once for all, since etcd
// keeps the size in a variable of the package.
const testSegment = 1 << 20

func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = testSegment
	os.Exit(m.Run())
}

// A testClock counts the bubble's virtual time, on a machine that can be started
// again.
type testClock struct {
	start time.Time
	boot  string
	base  time.Duration
}

func newTestClock(boot string) *testClock {
	return &testClock{start: time.Now(), boot: boot, base: time.Hour}
}

func (c *testClock) Monotonic() time.Duration { return c.base + time.Since(c.start) }
func (c *testClock) Wall() time.Time          { return time.Now() }
func (c *testClock) Boot() string             { return c.boot }

// startAt starts an engine on a directory; it fails the test if that fails.
func startAt(t *testing.T, dir string, c Config) *Engine {
	t.Helper()
	c.Dir, c.SegmentBytes = dir, testSegment
	if c.Clock == nil {
		c.Clock = newTestClock("boot")
	}
	e, err := Start(t.Context(), c)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return e
}

// closed is for engines whose state a test looks at when nobody else does.
func closed(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := e.node.State().Check(); err != nil {
		t.Errorf("state: %v", err)
	}
}

func TestContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Engine {
		e := startAt(t, t.TempDir(), Config{JournalBytes: audit.MinBytes})
		until(t, "it decides by the newest rules", func() bool { return e.Level() == core.NewestLevel })
		t.Cleanup(func() {
			if err := e.node.State().Check(); err != nil {
				t.Errorf("state: %v", err)
			}
		})
		return e
	})
}

func TestWhatWaitsForTheLogIsBounded(t *testing.T) {
	e := &Engine{}
	for range maxPending {
		if err := e.enter(1, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.enter(1, false); !errors.Is(err, leasehold.ErrLimited) {
		t.Fatalf("one more: %v", err)
	}
	if err := e.enter(1, true); err != nil {
		t.Fatalf("a renewal: %v", err)
	}
	for range maxPending + 1 {
		e.Leave(1)
	}
	if err := e.enter(maxPendingBytes, false); err != nil {
		t.Fatalf("as many bytes as there can be: %v", err)
	}
	if err := e.enter(1, false); !errors.Is(err, leasehold.ErrLimited) {
		t.Fatalf("one byte more: %v", err)
	}
	e.Leave(maxPendingBytes)
	if n, size := e.pending.Load(), e.pendingBytes.Load(); n != 0 || size != 0 {
		t.Fatalf("%d requests of %d bytes are left", n, size)
	}
}

// Every request that was counted in is counted out, answered or abandoned.
func TestNothingStaysPending(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	acquire(t, e, "r")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = e.Do(gone, lease("s", time.Minute))
	_ = e.Read(gone, func(core.View) {})
	refused := make(chan error, 3)
	submit := func() {
		e.Submit([]engine.Submission{{Ctx: t.Context(), Command: lease("u", time.Minute),
			Done: func(_ core.Answer, err error) { refused <- err }}})
	}
	submit()
	if err := <-refused; err != nil {
		t.Fatal(err)
	}
	e.pending.Add(maxPending)
	submit()
	if err := <-refused; !errors.Is(err, leasehold.ErrLimited) {
		t.Fatalf("one more than may wait: %v", err)
	}
	e.pending.Add(-maxPending)
	if err := e.Read(t.Context(), func(core.View) {}); err != nil {
		t.Fatal(err)
	}
	closed(t, e)
	if _, err := e.Do(t.Context(), lease("t", time.Minute)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
	submit()
	if err := <-refused; !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
	if n, size := e.pending.Load(), e.pendingBytes.Load(); n != 0 || size != 0 {
		t.Fatalf("%d requests of %d bytes are pending", n, size)
	}
}

// Readers of whom one is always there already must not keep time from passing.
func TestReadersDoNotKeepLeasesFromEnding(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	defer closed(t, e)
	var enough atomic.Bool
	defer enough.Store(true)
	var again func(core.View)
	again = func(core.View) { // in the node's own goroutine: the next one has come before it looks up
		if enough.Load() {
			return
		}
		call := replica.ReadCall{Read: again, Done: func(error) { e.Leave(0) }}
		if err := e.enqueueRead(call); err != nil {
			t.Error(err)
		}
	}
	mustDo(t, e, lease("r", leasehold.MinTTL))
	ended, forget := e.Feed().Await("default", "id-r")
	defer forget()
	if err := e.Read(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("a lease of 100 ms is held after 20 s")
	}
}

func TestAFailedServerDoesNotWaitForItsDiskToClose(t *testing.T) {
	inVirtualTime(t, aFailedServerDoesNotWaitForItsDiskToClose)
}

// A file of another server hangs on the disk that failed.
func aFailedServerDoesNotWaitForItsDiskToClose(t *testing.T, s *site) {
	s.begin("a")
	e, hangs := s.leader(), make(chan struct{})
	e.network.workers.Go(func() { <-hangs })
	e.disk.Send(replica.JournalFailed{Err: errors.New("it hangs")})
	<-e.Failed()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.stop("a")
	}()
	select {
	case <-done:
	case <-time.After(patienceFor):
		t.Error("it waits on")
	}
	close(hangs)
	<-done
	e.workers.Wait()
	_ = e.disk.CloseLog() // which has a goroutine of its own
}

// Where things are in a data directory.
const (
	formatFile = "format"
	walDir     = "wal"
	snapDir    = "snap"
	valuesDir  = "values"
)

// lease asks for a resource under an id made of its path.
func lease(path string, ttl time.Duration) *core.Acquire {
	return &core.Acquire{Namespace: "default", Resource: path, ID: "id-" + path, Holder: "ann", TTL: ttl}
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

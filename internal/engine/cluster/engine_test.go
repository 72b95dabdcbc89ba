package cluster

import (
	"os"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/leasehold/leasehold/internal/engine/enginetest"
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
	if err := e.node.State.Check(); err != nil {
		t.Errorf("state: %v", err)
	}
}

func TestContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Engine {
		e := startAt(t, t.TempDir(), Config{})
		t.Cleanup(func() {
			if err := e.node.State.Check(); err != nil {
				t.Errorf("state: %v", err)
			}
		})
		return e
	})
}

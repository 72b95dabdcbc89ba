package doortest

import (
	"testing"

	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// StartMemory starts an engine in memory for the tests of one door. When the test ends, its state is checked.
func StartMemory(t testing.TB) *memory.Engine {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() {
		if err := e.Check(); err != nil {
			t.Errorf("the state contradicts itself: %v", err)
		}
		_ = e.Close()
	})
	return e
}

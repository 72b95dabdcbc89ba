package memory_test

import (
	"testing"

	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/enginetest"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Engine {
		e := memory.Start(engine.NewGoClock())
		t.Cleanup(func() {
			if err := e.Check(); err != nil {
				t.Errorf("state: %v", err)
			}
		})
		return e
	})
}

package memory_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/store/storetest"
)

// config is that of the suite: in virtual time, nothing is late.
func config() storetest.Config {
	return storetest.Config{
		Open: func(t testing.TB) store.Store {
			s, err := memory.Open(memory.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Check(); err != nil {
					t.Errorf("the state contradicts itself: %v", err)
				}
			})
			return s
		},
		Second:     func(_ testing.TB, first store.Store) store.Store { return first.(*memory.Store).Again() },
		Virtual:    true,
		TTL:        10 * time.Second,
		WaiterLife: 15 * time.Second, // whatever the TTL
	}
}

func TestStore(t *testing.T) { storetest.Run(t, config()) }

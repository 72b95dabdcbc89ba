package memory_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, storetest.Config{Open: func(t testing.TB) store.Store {
		s, err := store.Open(t.Context(), "memory://"+b.Name(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
}

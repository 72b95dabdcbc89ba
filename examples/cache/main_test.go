package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/examples/internal/virtual"
)

// A copy is used until its lease ends. To set the price takes the lease, and so no copy is ever old.
func TestCopyIsNeverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := virtual.Open(t, "reader"), virtual.Open(t, "writer")
		price, loads, e := 41, 0, new(entry)
		get := func() int {
			t.Helper()
			got, err := e.get(t.Context(), reader, func() int { loads++; return price })
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if first, again := get(), get(); first != 41 || again != 41 || loads != 1 {
			t.Errorf("%d, %d, loaded %d times", first, again, loads)
		}
		began := time.Now()
		err := writer.Do(t.Context(), "prices/gold", func(context.Context, *client.Hold) error {
			if e.Valid() {
				t.Error("the copy is valid while the price is set")
			}
			price = 42
			return nil
		})
		if took := time.Since(began); err != nil || took > 2*time.Second {
			t.Errorf("setting it took %v: %v", took, err)
		}
		if got := get(); got != 42 || loads != 2 {
			t.Errorf("%d, loaded %d times", got, loads)
		}
	})
}

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/examples/internal/virtual"
)

// While one machine is at it, the others have nothing to do.
func TestOneMachineDoesTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := virtual.Open(t, "web-1"), virtual.Open(t, "web-2")
		h, err := one.TryAcquire(t.Context(), "reports/nightly")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := nightly(t.Context(), other); err != nil {
			t.Error(err)
		}
		if err := errors.Join(h.Release(t.Context()), nightly(t.Context(), other)); err != nil {
			t.Error(err)
		}
	})
}

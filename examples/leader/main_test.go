package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/examples/internal/virtual"
)

// One leads at a time, all see who, and the next leads when the first resigns.
func TestOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := virtual.Open(t, "a"), virtual.Open(t, "b")
		one, resign := context.WithCancel(t.Context())
		two, stop := context.WithCancel(t.Context())
		defer resign()
		done := make(chan error, 2)
		go func() { done <- campaign(one, first, "10.0.0.1") }()
		synctest.Wait()
		go func() { done <- campaign(two, second, "10.0.0.2") }()
		for _, want := range []string{"10.0.0.1", "10.0.0.2"} {
			time.Sleep(time.Hour)
			if leader, err := second.Leader(t.Context(), "scheduler"); err != nil || string(leader.Value) != want {
				t.Errorf("%s leads: %v", leader.Value, err)
			}
			resign()
		}
		stop()
		if err := errors.Join(<-done, <-done); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

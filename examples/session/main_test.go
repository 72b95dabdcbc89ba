package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/examples/internal/virtual"
)

// Without activity a login ends half an hour after the last; with it, it goes on.
func TestLoginEndsWithoutActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, elsewhere := virtual.Open(t, "desk"), virtual.Open(t, "phone")
		keys, input := io.Pipe()
		done := make(chan error)
		go func() { done <- login(t.Context(), c, "ann", keys) }()
		for range 10 {
			time.Sleep(20 * time.Minute)
			_, _ = input.Write([]byte("still here\n"))
		}
		synctest.Wait()
		if err := login(t.Context(), elsewhere, "ann", strings.NewReader("")); !errors.Is(err, client.ErrHeld) {
			t.Errorf("a second login: %v", err)
		}
		time.Sleep(29 * time.Minute)
		if err := login(t.Context(), elsewhere, "ann", strings.NewReader("")); !errors.Is(err, client.ErrHeld) {
			t.Errorf("after 29 minutes: %v", err)
		}
		time.Sleep(12 * time.Minute)
		if err := login(t.Context(), elsewhere, "ann", strings.NewReader("")); err != nil {
			t.Errorf("after 41 minutes: %v", err)
		}
		_, _ = input.Write([]byte("back\n"))
		if err := <-done; !errors.Is(err, client.ErrExpired) {
			t.Errorf("the first login ended with %v", err)
		}
	})
}

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/examples/internal/virtual"
)

// A reservation outlives the program that made it, and ends after four hours.
func TestReservationLastsFourHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := virtual.Open(t, "keep") // the store is there as long as somebody has it open
		c := virtual.Open(t, "desk")
		if err := errors.Join(book(t.Context(), c, "ann"), c.Close()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4*time.Hour - time.Minute)
		if err := book(t.Context(), keep, "bob"); !errors.Is(err, client.ErrHeld) {
			t.Errorf("a minute before the end: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := book(t.Context(), keep, "bob"); err != nil {
			t.Errorf("after the end: %v", err)
		}
	})
}

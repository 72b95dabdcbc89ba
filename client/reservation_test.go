package client_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reservations"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// Who claims a reservation that is not there, or no longer, is told so at once, however long it would wait.
func TestAReservationThatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		if _, err := c.Acquire(t.Context(), "room", client.Reservation("none")); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("one that never was: %v", err)
		}
		_, err := reservations.Reserve(t.Context(), s.Inside(), reservations.Request{Resource: "room", Holder: "ann", ID: "r",
			From: v1.Time{Time: time.Now().Add(time.Hour)}, Length: v1.Duration(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		claimed := make(chan error, 1)
		go func() {
			_, err := c.Acquire(t.Context(), "room", client.Reservation("r"))
			claimed <- err
		}()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if err := reservations.Cancel(t.Context(), s.Inside(), "r", "ops", "moved"); err != nil {
			t.Fatal(err)
		}
		if err := <-claimed; !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("one that was cancelled: %v", err)
		}
		if _, err := c.TryAcquire(t.Context(), "room", client.Reservation("r")); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("one that is over: %v", err)
		}
	})
}

package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Of very many resources only the last has a reservation in the span. A read gives up when it has looked at enough of
// them, and the next one goes on from there.
func TestAListOfReservationsIsBounded(t *testing.T) {
	s := newState()
	const resources = 3000
	at := func(d time.Duration) reservation.Moment { return reservation.Moment(0).Add(d) }
	reserve := func(n int, from time.Duration) {
		name := fmt.Sprintf("r%04d", n)
		a := apply(t, s, time.Hour, &Reserve{Namespace: "default", ID: name, Resource: name, Holder: "ann",
			From: at(from), Length: time.Hour})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for n := range resources {
		reserve(n, 100*24*time.Hour)
	}
	reserve(resources, 2*time.Hour)
	q := ReservationQuery{Since: at(time.Hour), Until: at(24 * time.Hour), Most: 10}
	reads, found := 0, 0
	for {
		v := s.View(0).(*view)
		list, next := v.Reservations("default", q)
		if reads++; v.work.done > 2*v.work.most {
			t.Fatalf("a read does %d of the %d that it may", v.work.done, v.work.most)
		}
		found += len(list)
		if next == "" {
			break
		}
		if next == q.After {
			t.Fatalf("the read after %q leads nowhere", next)
		}
		q.After = next
	}
	if found != 1 || reads < 2 {
		t.Errorf("%d were found in %d reads", found, reads)
	}
}

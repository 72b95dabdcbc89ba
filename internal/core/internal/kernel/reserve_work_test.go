package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A reservation for which there is no room is refused with the next times at which there is. To look for those in a
// large pool costs something each time, and ends when that is too much.
func TestFreeTimesOfALargePoolAreCounted(t *testing.T) {
	s := newState()
	for h := range 1000 {
		c := &SetUnits{Namespace: "default", Resource: "gpu", Host: fmt.Sprint("h", h), Units: make([]HostUnit, 10)}
		for i := range c.Units {
			c.Units[i].Name = fmt.Sprintf("%s-%d", c.Host, i)
		}
		apply(t, s, 1, c)
	}
	var refused *leasehold.Error
	for i := range 100 {
		c := &Reserve{Namespace: "default", ID: fmt.Sprint("r", i), Resource: "gpu", Holder: "ann", Slots: 10, Length: time.Hour,
			From: reservation.Moment(time.Duration(1+i%99) * time.Hour), Select: &leasehold.Select{Where: "host=h1"}}
		refused = apply(t, s, 1, c).Err
	}
	sp := s.space("default")
	if least := 3 * s.poolCost(sp, "gpu"); refused == nil || s.Work() < least || s.Work() > 2*maxWork {
		t.Errorf("a refusal (%v) is %d units of work: want %d to %d", refused, s.Work(), least, 2*maxWork)
	}
}

// A grant tells its holder of the reservations that begin soon. There may be thousands, and each is compared with all
// who share the resource.
func TestAGrantBeforeManyReservations(t *testing.T) {
	s := newState()
	const n = 1000
	apply(t, s, 1, &Define{Namespace: "default", Definition: leasehold.Definition{Path: "licence", Capacity: n}})
	for i := range n {
		apply(t, s, 1, &Reserve{Namespace: "default", ID: fmt.Sprint("r", i), Resource: "licence", Holder: "ann", Slots: 1,
			From: reservation.Moment(time.Hour), Length: time.Hour})
	}
	for range 10 {
		apply(t, s, 50*time.Minute, &Tick{})
	}
	for i := range 20 {
		a := apply(t, s, 50*time.Minute, &Acquire{Namespace: "default", Resource: "licence", ID: fmt.Sprint("l", i), Holder: "bob",
			Slots: 1, TTL: time.Hour})
		if a.Err != nil || s.Work() > 2*maxWork {
			t.Fatalf("lease %d takes %d units of work: at most %d are allowed (%v)", i, s.Work(), 2*maxWork, a.Err)
		}
	}
}

package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// TestASeriesOutlastsAFullPlan: while others have reserved as much as there may be, a series is planned no further, and
// nothing of it is dropped.
func TestASeriesOutlastsAFullPlan(t *testing.T) {
	d := newDesk(t)
	day := 24 * time.Hour
	moment := func(at time.Duration) reservation.Moment { return reservation.Moment(wallOf(at)) }
	d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "r", Capacity: leasehold.MaxCapacity}})
	d.must(&core.Reserve{Namespace: ns, ID: "daily", Resource: "r", Holder: "ann", Slots: 1, Length: time.Hour,
		Rule:   &leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, Length: time.Hour},
		Starts: []reservation.Moment{moment(day)}, To: moment(2 * day)})
	for i := 1; i < leasehold.MaxReservationsOf; i++ {
		c := reserve("r", i, 1, 9*day)
		c.Holder = "bob"
		d.must(c)
	}
	extend := func(after time.Duration) {
		c := &core.Reserve{Namespace: ns, ID: "daily", After: moment(after), To: moment(4 * day)}
		for start := after; start < 4*day; start += day {
			c.Starts = append(c.Starts, moment(start))
		}
		d.must(c)
	}
	planned := func() int {
		list, _ := d.state.View(0).Reservations(ns, core.ReservationQuery{Series: "daily", Most: 10000})
		return len(list)
	}
	if extend(2 * day); planned() != 1 {
		t.Fatalf("%d occurrences are planned while there is no room", planned())
	}
	d.must(&core.CancelReservation{Namespace: ns, ID: fmt.Sprint("r", 1)})
	if extend(2 * day); planned() != 2 {
		t.Fatalf("%d occurrences are planned when there was room for one more", planned())
	}
	d.must(&core.CancelReservation{Namespace: ns, ID: fmt.Sprint("r", 2)})
	if extend(3 * day); planned() != 3 {
		t.Fatalf("%d occurrences are planned in the end", planned())
	}
}

// TestPlannedUnitsAreBounded: units that are planned for reservations of a pool cost memory, and a look at each when
// somebody reserves others at the same time.
func TestPlannedUnitsAreBounded(t *testing.T) {
	d := newDesk(t)
	d.units("gpu", 10, 1000)
	ask := func(i, slots int, length time.Duration) *core.Reserve {
		c := reserve("gpu", i, slots, time.Duration(1+i)*time.Hour)
		c.Select, c.Length = spread, length
		return c
	}
	for i := range 6 {
		d.must(ask(i, 9990, time.Hour))
	}
	d.refused(ask(7, 9990, time.Hour), leasehold.Limited,
		"9990 more units of gpu are asked for, and 59940 are planned for its reservations: at most 65536")
	d.must(ask(8, 5000, time.Hour))
	long := reserve("gpu", 100, 1, time.Hour)
	long.Length = 24 * time.Hour
	if d.must(long); d.state.Work() < leasehold.MaxPlannedUnits/20 || d.state.Work() > 2*kernel.MaxWork {
		t.Errorf("to compare with all that are planned is %d units of work", d.state.Work())
	}
}

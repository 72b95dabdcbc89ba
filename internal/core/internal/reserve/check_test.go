package reserve

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/alarm"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/learn"
	"github.com/leasehold/leasehold/internal/core/internal/records"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/internal/unit"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// newState returns a state, and its reservations.
func newState() (*kernel.State, *reservations) {
	made := New().(*reservations)
	return kernel.NewAt(kernel.NewestLevel, &kernel.Subjects{
		NewAreas: area.New, NewTasks: task.New, NewAlarms: alarm.New, NewPools: unit.New, NewRecords: records.New,
		NewReservations: func() kernel.Reservations { return made }, NewLearning: learn.New,
	}), made
}

func apply(t *testing.T, s *kernel.State, at time.Duration, commands ...kernel.Command) {
	t.Helper()
	result, err := s.Apply(kernel.Time(time.Hour+at), int64(time.Hour+at), commands)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range result.Answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}

// claimed returns a state with a reservation that begins in an hour, whose claim waits for it.
func claimed(t *testing.T) (*kernel.State, *reservations) {
	t.Helper()
	s, made := newState()
	apply(t, s, 0,
		&kernel.Reserve{Namespace: "default", ID: "r", Resource: "desk", Holder: "ann", Length: time.Hour,
			From: reservation.Moment(2 * time.Hour)},
		&kernel.Acquire{Namespace: "default", Resource: "desk", ID: "l", Holder: "ann", Reservation: "r", TTL: 3 * time.Hour, Wait: 2 * time.Hour})
	return s, made
}

// TestWhatIsOverIsForgotten: once no reservation is remembered, nothing is left of their tables.
func TestWhatIsOverIsForgotten(t *testing.T) {
	t.Parallel()
	s, made := claimed(t)
	apply(t, s, time.Second, &kernel.CancelReservation{Namespace: "default", ID: "r"})
	if made.of.Len() != 1 || made.dates.Len() != 1 {
		t.Fatalf("%d namespaces have %d dates", made.of.Len(), made.dates.Len())
	}
	apply(t, s, 11*time.Minute, &kernel.Tick{})
	if made.of.Len() != 0 || made.dates.Len() != 0 {
		t.Errorf("%d namespaces have %d dates", made.of.Len(), made.dates.Len())
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestANamespaceWithASeriesIsKept: nothing is planned of the series yet, and nothing else is there.
func TestANamespaceWithASeriesIsKept(t *testing.T) {
	t.Parallel()
	s, _ := newState()
	apply(t, s, 0,
		&kernel.Reserve{Namespace: "weekly", ID: "r", Resource: "desk", Holder: "ann", Length: time.Hour,
			Rule: &leasehold.Rule{Zone: "UTC", Days: 1, Length: time.Hour}, To: reservation.Moment(2 * time.Hour)},
		&kernel.Reserve{Namespace: "default", ID: "r", Resource: "desk", Holder: "ann", Length: time.Minute},
		&kernel.CancelReservation{Namespace: "default", ID: "r"})
	for i := range 20 {
		apply(t, s, time.Duration(i)*time.Hour, &kernel.Tick{})
	}
	view := s.View(0)
	if list := view.Series("weekly", nil); len(list) != 1 || !slices.Equal(view.Namespaces(), []string{"weekly"}) {
		t.Errorf("%v are left of %v", list, view.Namespaces())
	}
}

// TestCheckFinds damages reservations in every way that Check is there for.
func TestCheckFinds(t *testing.T) {
	change := func(made *reservations, change func(r *reservation.Reservation)) {
		of := made.named("default")
		damaged := *of.Get("r")
		change(&damaged)
		of.Set(&damaged)
	}
	for _, test := range []struct {
		damage func(made *reservations)
		says   string
	}{
		{func(made *reservations) { made.dates = New().(*reservations).dates }, "1 reservations are known, the calendar has 0"},
		{func(made *reservations) { change(made, func(r *reservation.Reservation) { r.From++ }) }, "is not in the calendar"},
		{func(made *reservations) { made.named("default").Delete("r") }, "0 reservations are known, 1 are counted"},
		{func(made *reservations) { made.open("other") }, "other has no reservations, and a table"},
		{func(made *reservations) { change(made, func(r *reservation.Reservation) { r.Lease = "m" }) }, `claimed by "m", which does not know`},
		{func(made *reservations) { change(made, func(r *reservation.Reservation) { r.Begun = true }) }, "wrong place in the queue"},
	} {
		s, made := claimed(t)
		if err := s.Check(); err != nil {
			t.Fatalf("a state that nobody has damaged: %v", err)
		}
		test.damage(made)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

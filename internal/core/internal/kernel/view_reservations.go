package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A ReservationQuery says which reservations to show: those of resources whose path begins with Prefix, as far as they
// share time with the span from Since to Until.
type ReservationQuery struct {
	Prefix   string
	Resource string // exactly this; empty: all with the prefix
	Holder   string // empty: anybody
	Series   string // of this one; empty: all
	Since    reservation.Moment
	Until    reservation.Moment // 0: all that come
	After    string             // where the page before ended
	Most     int

	// Show leaves out those for which it returns false; nil: none.
	Show func(resource string, owner *access.Owner) bool
}

// Reservations shows reservations that are not over by resource and by when they begin. next is where to continue, and
// empty at the end.
func (v *view) Reservations(namespace string, q ReservationQuery) (list []leasehold.Reservation, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	return v.s.reservations.List(v.s.readIn(sp), &q)
}

// Reservation shows one, also if it was over a short time ago; false if it is unknown.
func (v *view) Reservation(namespace, id string) (shown leasehold.Reservation, owner *access.Owner, ok bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return shown, nil, false
	}
	return v.s.reservations.Show(Namespace{v.s.State, sp}, id)
}

// Series shows recurring reservations by id, but those for which show returns false: there are at most
// leasehold.MaxSeries.
func (v *view) Series(
	namespace string, show func(path string, owner *access.Owner) bool,
) (list []leasehold.Series) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil
	}
	return v.s.reservations.Series(v.s.readIn(sp), show)
}

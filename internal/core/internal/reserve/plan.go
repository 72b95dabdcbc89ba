package reserve

import (
	"slices"

	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// planned reports whether there is room for a reservation in a span, and who is in the way. In a pool it notes the
// units.
func (s *reservations) planned(
	k kernel.Turn, r *reservation.Reservation, from, until reservation.Moment,
) (fits bool, by *reservation.Reservation) {
	slots, all, one, looked := s.table(k.Namespace).Peak(r.Resource, from, until)
	k.Take(looked / kernel.PerUnit)
	capacity := k.Capacity(r.Resource, nil)
	switch {
	case one == nil && !k.InUnits(r.Resource, r.Slots):
		return true, nil
	case all || r.Slots == 0 && one != nil || slots+int(r.Slots) > capacity:
		return false, one
	case k.InUnits(r.Resource, r.Slots):
		return planUnits(k.Namespace, r, s.plannedUnits(k, r, from, until)), one
	}
	return true, nil
}

// plannedUnits returns the units that are planned in a span for others than a reservation.
func (s *reservations) plannedUnits(
	k kernel.Turn, r *reservation.Reservation, from, until reservation.Moment,
) (planned pool.Names) {
	names := 0
	s.table(k.Namespace).Overlapping(r.Resource, from, until, func(other *reservation.Reservation) bool {
		if other.ID != r.ID {
			names += len(other.Units)
			planned.Add(other.Units)
		}
		return true
	})
	k.Take(names / kernel.PerUnit)
	return planned
}

// planUnits chooses units of a pool for a reservation, without those that are taken, and reports whether there are
// enough. Those that nobody has now come first.
func planUnits(n kernel.Namespace, r *reservation.Reservation, taken pool.Names) bool {
	units := n.PlanUnits(r.Resource, askOf(r), func(u *pool.Unit) int {
		switch {
		case taken.Has(u.Name):
			return -1
		case u.Lease != "":
			return pool.Serves
		}
		return pool.Suits
	})
	if units == nil {
		return false
	}
	r.Units = make([]string, len(units))
	for i, u := range units {
		r.Units[i] = u.Name
	}
	slices.Sort(r.Units)
	return true
}

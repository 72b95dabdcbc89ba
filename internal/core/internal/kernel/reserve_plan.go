package kernel

import (
	"slices"

	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// planned reports whether there is room for a reservation in a span, and who is in the way. In a pool it notes the
// units.
func (l *look) planned(
	sp *space, r *reservation.Reservation, from, until reservation.Moment,
) (fits bool, by *reservation.Reservation) {
	slots, all, one, looked := sp.reservations.Peak(r.Resource, from, until)
	l.work.take(looked / PerUnit)
	capacity := sp.capacity(r.Resource, nil, sp.definition(r.Resource))
	switch {
	case one == nil && !sp.isPart(r.Resource, r.Slots):
		return true, nil
	case all || r.Slots == 0 && one != nil || slots+int(r.Slots) > capacity:
		return false, one
	case sp.isPart(r.Resource, r.Slots):
		return l.planUnits(sp, r, l.plannedUnits(sp, r, from, until)), one
	}
	return true, nil
}

// plannedUnits returns the units that are planned in a span for others than a reservation.
func (l *look) plannedUnits(
	sp *space, r *reservation.Reservation, from, until reservation.Moment,
) (planned pool.Names) {
	names := 0
	sp.reservations.Overlapping(r.Resource, from, until, func(other *reservation.Reservation) bool {
		if other.ID != r.ID {
			names += len(other.Units)
			planned.Add(other.Units)
		}
		return true
	})
	l.work.take(names / PerUnit)
	return planned
}

// planUnits chooses units of a pool for a reservation, without those that are taken, and reports whether there are
// enough. Those that nobody has now come first.
func (s *State) planUnits(sp *space, r *reservation.Reservation, taken pool.Names) bool {
	units := sp.pools.Plan(r.Resource, askOf(r), func(u *pool.Unit) int {
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

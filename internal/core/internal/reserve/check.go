package reserve

import (
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Check checks the reservations of a namespace: the calendar has each, its claim knows of it, stands where it should,
// and is no lease before the start.
func (s *reservations) Check(n kernel.Namespace, that func(ok bool, format string, args ...any)) {
	s.table(n).Scan(func(r *reservation.Reservation) bool {
		_, dated := s.dates.Get(date{r.Next(), n.Name(), r.ID})
		that(dated, "%s: reservation %q is not in the calendar", n.Name(), r.ID)
		if r.Lease == "" {
			return true
		}
		claim := n.Claim(r.Lease)
		that(claim != nil && claim.Reservation() == r.ID && claim.Resource == r.Resource && claim.Slots == r.Slots,
			"%s: reservation %q is claimed by %q, which does not know", n.Name(), r.ID, r.Lease)
		that(claim == nil || !claim.Waiting() || claim.Early() != r.Begun,
			"%s: the claim of reservation %q has the wrong place in the queue", n.Name(), r.ID)
		that(claim == nil || r.Begun || claim.Waiting(), "%s: reservation %q is used before it began", n.Name(), r.ID)
		return true
	})
}

// CheckAll checks that the calendar has each reservation once, and that all are counted.
func (s *reservations) CheckAll(counted int, that func(ok bool, format string, args ...any)) {
	all := 0
	s.of.Scan(func(namespace string, t *reservation.Table) bool {
		that(t.Len()+t.Recurring() > 0, "%s has no reservations, and a table", namespace)
		all += t.Len()
		return true
	})
	that(all == s.dates.Len(), "%d reservations are known, the calendar has %d", all, s.dates.Len())
	that(all == counted, "%d reservations are known, %d are counted", all, counted)
}

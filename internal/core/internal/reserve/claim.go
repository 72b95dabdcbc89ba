package reserve

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Ask returns an acquire that claims a reservation as one for what is reserved, at the place in the queue that it has.
func (s *reservations) Ask(k kernel.Turn, c *kernel.Acquire) (*kernel.Acquire, *leasehold.Error) {
	r := s.unclaimed(k, c)
	if r == nil || !k.Owns(r.Owner) { // that of somebody else is as one that is unknown
		return nil, kernel.NoReservation(c.Reservation).Err
	}
	claim := k.Claim(r.Lease)
	switch {
	case r.Over != 0:
		return nil, reservationOver(r)
	case r.Resource != c.Resource:
		return nil, refuse(leasehold.Refused, "reservation %s is for %s, not for %s", r.ID, r.Resource, c.Resource).Err
	case claim != nil:
		return nil, refuse(leasehold.Held, "reservation %s is claimed by %s already, with lease %s", r.ID, claim.Holder,
			claim.ID).Err
	case k.Mirrored(r.Resource) != "":
		return nil, refuse(leasehold.Refused, "%s shows its waiters in the order in which they came: nobody goes "+
			"before others", r.Resource).Err
	case !r.Begun && c.Wait == 0:
		return nil, refuse(leasehold.Held, "reservation %s begins at %s: wait for it, or come then", r.ID,
			r.From.Text()).Err
	}
	asked := *c
	asked.Reservation, asked.Slots, asked.Select = r.ID, int(r.Slots), r.Select
	if asked.Priority = kernel.ReservedPriority; !r.Begun {
		asked.Priority = kernel.EarlyPriority
	}
	return &asked, nil
}

// unclaimed returns the reservation that an acquire names, after an earlier claim of it that is over has ended.
func (s *reservations) unclaimed(k kernel.Turn, c *kernel.Acquire) *reservation.Reservation {
	k.Settle(c.Resource)
	if r := s.Find(k.Namespace, c.Reservation); r != nil && r.Lease != "" {
		k.Touch(r.Lease)
	}
	return s.Find(k.Namespace, c.Reservation)
}

// Find returns the reservation with an id or, of a series, the one that is first to be claimed; nil if there is none.
func (s *reservations) Find(n kernel.Namespace, id string) *reservation.Reservation {
	if r := s.Get(n, id); r != nil {
		return r
	}
	var found *reservation.Reservation
	if s.table(n).SeriesOf(id) != nil {
		s.table(n).Occurrences(id, func(r *reservation.Reservation) bool {
			if r.Over == 0 && r.Lease == "" {
				found = r
			}
			return found == nil
		})
	}
	return found
}

// Claimed notes the id of the claim of a reservation.
func (s *reservations) Claimed(k kernel.Turn, id, lease string) {
	claimed := *s.Get(k.Namespace, id)
	claimed.Lease = lease
	s.set(k, &claimed)
}

func (s *reservations) Kept(n kernel.Namespace, path, claiming string) (slots int, all bool) {
	kept := s.table(n).Kept(path)
	if r := s.Get(n, claiming); r != nil && r.Open() && r.Resource == path {
		if kept.Slots -= int(r.Slots); r.Slots == 0 {
			kept.Whole--
		}
	}
	return kept.Slots, kept.Whole > 0
}

func (s *reservations) KeptUnits(n kernel.Namespace, path, claiming string, names *btree.Set[string]) {
	s.table(n).Keeping(path, func(r *reservation.Reservation) bool {
		if r.ID != claiming {
			for _, name := range r.Units {
				names.Insert(name)
			}
		}
		return true
	})
}

func (s *reservations) Keeper(n kernel.Namespace, path string) (found *reservation.Reservation) {
	s.table(n).Keeping(path, func(r *reservation.Reservation) bool {
		found = r
		return false
	})
	return found
}

// Ended says what becomes of a reservation when its claim ends. A wait that was given up leaves it as it was. A lease
// that ended uncleanly may be that of a process that died, and comes back.
func (s *reservations) Ended(k kernel.Turn, c *kernel.Claim, how leasehold.How) {
	r := s.Get(k.Namespace, c.Reservation())
	if r == nil || r.Lease != c.ID {
		return
	}
	died := how == leasehold.ByTTL || how == leasehold.SessionExpired || how == leasehold.Abandoned
	if !c.Waiting() && !died || r.Until <= k.Date() {
		s.free(k, r, "its lease ended ("+how.String()+")")
		return
	}
	open := *r
	open.Lease = ""
	if !c.Waiting() {
		open.ClaimBy = k.Date().Add(leasehold.ClaimWithin)
	}
	s.set(k, &open)
}

// soon is how far ahead a holder is told of the next reservation.
const soon = 24 * time.Hour

func (s *reservations) Upcoming(n kernel.Namespace, path, own string) *leasehold.Upcoming {
	planned := s.table(n)
	if planned.Of(path) == 0 {
		return nil
	}
	next := planned.Next(path, n.Date(), n.Date().Add(soon), own)
	if next == nil {
		return nil
	}
	return &leasehold.Upcoming{ID: next.ID, Holder: next.Holder, Reason: next.Reason, From: next.From.Time(),
		Until: next.Until.Time()}
}

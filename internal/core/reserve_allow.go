package core

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// allowReserve judges a reservation as the acquire that it stands for. A series is extended by servers alone.
func (s *State) allowReserve(c *Reserve) *leasehold.Error {
	if c.Extends() {
		return s.allowCluster()
	}
	v := takeVerb(c.Slots)
	if !s.permit.MayHold(v, c.Namespace, c.Resource, c.Holder, nil) {
		return s.denyHolder(v, c.Namespace, c.Resource, c.Holder)
	}
	if _, owner, known := s.reservationOwner(c.Namespace, c.ID); known && !s.permit.Owns(owner) {
		return refuse(leasehold.Refused, "reservation id %q is used already: choose another", c.ID).Err
	}
	return nil
}

// allowCancel lets those cancel a reservation whose it is, and those who may break leases on the resource.
func (s *State) allowCancel(c *CancelReservation) *leasehold.Error {
	path, owner, known := s.reservationOwner(c.Namespace, c.ID)
	switch {
	case !known || s.permit.Owns(owner) || s.permit.May(access.Break, c.Namespace, path, owner):
		return nil
	case s.permit.May(access.Read, c.Namespace, path, owner):
		return s.deny(access.Break, c.Namespace, path)
	}
	return noReservation(c.ID).Err
}

// claimVerb is what it takes to claim a reservation. That of somebody else is unknown, and what is unknown is refused
// when it is looked for.
func (s *State) claimVerb(c *Acquire) access.Verb {
	if sp := s.space(c.Namespace); sp != nil {
		if r := s.findReservation(sp, c.Reservation); r != nil {
			return takeVerb(int(r.Slots))
		}
	}
	return access.Acquire
}

// reservationOwner returns the resource and the owner of a reservation or a series.
func (s *State) reservationOwner(namespace, id string) (path string, owner *access.Owner, known bool) {
	sp := s.space(namespace)
	if sp == nil {
		return "", nil, false
	}
	if r := sp.reservations.Get(id); r != nil {
		return r.Resource, r.Owner, true
	}
	if series := sp.reservations.SeriesOf(id); series != nil {
		return series.Resource, series.Owner, true
	}
	return "", nil, false
}

// mayClaim refuses a reservation that is somebody else's, as one that is unknown.
func (s *State) mayClaim(r *reservation.Reservation) bool {
	return s.permit == nil || s.permit.Owns(r.Owner)
}

// mayShow reports whether the asker may know who has a resource, and who reserved it.
func (s *State) mayShow(sp *space, path string) bool {
	return s.permit == nil || s.permit.May(access.Read, sp.name, path, nil)
}

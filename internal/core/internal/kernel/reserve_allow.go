package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// allowReserve judges a reservation as the acquire that it stands for. A series is extended by servers alone.
func (l *look) allowReserve(c *Reserve) *leasehold.Error {
	if c.Extends() {
		return l.allowCluster()
	}
	v := takeVerb(c.Slots)
	if !l.permit.MayHold(v, c.Namespace, c.Resource, c.Holder, nil) {
		return l.denyHolder(v, c.Namespace, c.Resource, c.Holder)
	}
	if _, owner, known := l.reservationOwner(c.Namespace, c.ID); known && !l.permit.Owns(owner) {
		return refuse(leasehold.Refused, "reservation id %q is used already: choose another", c.ID).Err
	}
	return nil
}

// allowCancel lets those cancel a reservation whose it is, and those who may break leases on the resource.
func (l *look) allowCancel(c *CancelReservation) *leasehold.Error {
	path, owner, known := l.reservationOwner(c.Namespace, c.ID)
	switch {
	case !known || l.permit.Owns(owner) || l.permit.May(access.Break, c.Namespace, path, owner):
		return nil
	case l.permit.May(access.Read, c.Namespace, path, owner):
		return l.deny(access.Break, c.Namespace, path)
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
func (l *look) mayClaim(r *reservation.Reservation) bool {
	return l.permit == nil || l.permit.Owns(r.Owner)
}

// mayShow reports whether the asker may know who has a resource, and who reserved it.
func (l *look) mayShow(sp *space, path string) bool {
	return l.permit == nil || l.permit.May(access.Read, sp.name, path, nil)
}

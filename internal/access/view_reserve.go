package access

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// seesReserved reports whether the asker may see a reservation: its own, or one of a resource that it may read.
func (v *view) seesReserved(namespace string) func(path string, owner *policy.Owner) bool {
	return func(path string, owner *policy.Owner) bool {
		return v.permit.Owns(owner) || v.permit.May(policy.Read, namespace, path, owner)
	}
}

// Reservations: read. Who may read its own only sees those.
func (v *view) Reservations(namespace string, q core.ReservationQuery) ([]leasehold.Reservation, string) {
	if !v.permit.Knows(namespace) {
		v.deny(policy.Read, namespace, q.Prefix)
		return v.in.Reservations(nowhere, q)
	}
	v.shown = true
	q.After, q.Show = v.open(q.After), v.seesReserved(namespace)
	list, next := v.in.Reservations(namespace, q)
	return list, v.seal(next, next == "")
}

// Reservation: those who see it. To others it is unknown.
func (v *view) Reservation(namespace, id string) (leasehold.Reservation, *policy.Owner, bool) {
	v.shown = true
	r, owner, ok := v.in.Reservation(namespace, id)
	if !ok || !v.seesReserved(namespace)(r.Resource, owner) {
		return v.in.Reservation(nowhere, id)
	}
	return r, owner, true
}

// Series: as Reservations.
func (v *view) Series(namespace string, _ func(string, *policy.Owner) bool) []leasehold.Series {
	if !v.permit.Knows(namespace) {
		v.deny(policy.Read, namespace, "")
		return v.in.Series(nowhere, nil)
	}
	v.shown = true
	return v.in.Series(namespace, v.seesReserved(namespace))
}

// Date: anybody. It is in every answer as the time of the server.
func (v *view) Date() reservation.Moment { return v.in.Date() }

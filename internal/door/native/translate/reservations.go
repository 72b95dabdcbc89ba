package translate

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/door"
)

// ReservationQuery reads which reservations are asked for: by themselves, those that are not over.
func ReservationQuery(query door.Query) (q core.ReservationQuery, err error) {
	var from, until time.Time
	var badFrom, badUntil, badResource error
	q.Resource, q.Prefix, q.Holder = query.Get("resource"), query.Get("prefix"), query.Get("holder")
	from, badFrom = Moment(query, "from")
	until, badUntil = Moment(query, "until")
	if query.Has("resource") {
		badResource = Path("resource", q.Resource)
	}
	err = door.First(Text("prefix", q.Prefix), badFrom, badUntil, badResource, Text("holder", q.Holder))
	switch {
	case err != nil:
		return q, err
	case q.Resource != "" && q.Prefix != "":
		return q, door.Invalid("resource and prefix name two things: give one")
	case from.IsZero():
		from = time.Now()
	}
	q.Since = reservation.Moment(from.UnixNano())
	if !until.IsZero() {
		q.Until = reservation.Moment(until.UnixNano())
	}
	if q.Until != 0 && q.Until <= q.Since {
		return q, door.Invalid("until is not later than from")
	}
	return q, nil
}

// Moment reads a calendar time; the zero one if there is none.
func Moment(query door.Query, name string) (time.Time, error) {
	s := query.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, door.Invalid("%s %s is not a time: write it as 2026-03-01T04:30:00Z", name, door.Brief(s))
	}
	return t, nil
}

// FindReservation returns a reservation or a series, that with its next occurrence.
func FindReservation(
	v core.View, namespace, id string,
) (shown leasehold.Reservation, series *leasehold.Series, known bool) {
	if shown, _, known = v.Reservation(namespace, id); known {
		return shown, nil, true
	}
	for _, s := range v.Series(namespace, nil) {
		if s.ID != id {
			continue
		}
		shown = Recurring(&s)
		q := core.ReservationQuery{Resource: s.Resource, Series: id, Most: 1}
		if next, _ := v.Reservations(namespace, q); len(next) > 0 {
			shown.From, shown.Until, shown.State = next[0].From, next[0].Until, next[0].State
		}
		return shown, &s, true
	}
	return shown, nil, false
}

// Recurring shows a series as a reservation of which nothing is planned.
func Recurring(s *leasehold.Series) leasehold.Reservation {
	return leasehold.Reservation{Namespace: s.Namespace, ID: s.ID, Resource: s.Resource, Holder: s.Holder,
		Reason: s.Reason, Slots: s.Slots, Select: s.Select}
}

package kernel

import (
	"math"
	"strconv"
	"strings"

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
	if q.Until == 0 {
		q.Until = math.MaxInt64
	}
	last, after := q.After, placeOf(q.After)
	look := func(resource string) bool {
		if !strings.HasPrefix(resource, q.Prefix) || q.Resource != "" && resource != q.Resource {
			return false
		}
		if !v.work.take(LeaseCost) && resource != after.Resource {
			next = placeText(&reservation.Reservation{Resource: resource, From: math.MinInt64})
		}
		return next == ""
	}
	sp.reservations.ByDay(max(q.Prefix, q.Resource, after.Resource), q.Since, q.Until, look,
		func(r *reservation.Reservation) bool {
			switch {
			case q.After != "" && !after.Before(r):
				return true
			case len(list) == q.Most || !v.work.take(LeaseCost) && last != q.After:
				next = last
				return false
			}
			last = placeText(r)
			if q.matches(r) && (q.Show == nil || q.Show(r.Resource, r.Owner)) {
				list = append(list, v.reservation(sp, r))
			}
			return true
		})
	return list, next
}

// matches reports whether a reservation is among those that are asked for, wherever and whenever it is.
func (q *ReservationQuery) matches(r *reservation.Reservation) bool {
	return (q.Holder == "" || r.Holder == q.Holder) && (q.Series == "" || r.Series == q.Series)
}

// placeText is the place of a reservation among all, as the next page needs it.
func placeText(r *reservation.Reservation) string {
	return r.Resource + "\x00" + strconv.FormatInt(int64(r.From), 10) + "\x00" + r.ID
}

// placeOf reads what placeText wrote. A text that it did not write is some place, too.
func placeOf(text string) *reservation.Reservation {
	resource, rest, _ := strings.Cut(text, "\x00")
	from, id, _ := strings.Cut(rest, "\x00")
	at, _ := strconv.ParseInt(from, 10, 64)
	return &reservation.Reservation{Resource: resource, From: reservation.Moment(at), ID: id}
}

// reservation shows one as people see it: its state follows from its claim.
func (v *view) reservation(sp *space, r *reservation.Reservation) leasehold.Reservation {
	shown := leasehold.Reservation{Namespace: sp.name, ID: r.ID, Resource: r.Resource, Holder: r.Holder,
		Reason: r.Reason, Slots: int(r.Slots), Select: r.Select, From: r.From.Time(), Until: r.Until.Time(),
		State: leasehold.Planned, Lease: r.Lease, Units: r.Units, Series: r.Series, Why: r.Why}
	claim, claimed := sp.claims.Get(r.Lease)
	switch {
	case r.Over != 0:
		shown.State = leasehold.Over
	case claimed && claim.Waiting():
		shown.State = leasehold.Claimed
	case claimed:
		shown.State, shown.Units = leasehold.InUse, claim.terms().Units
	case r.Begun:
		shown.State, shown.ClaimBy = leasehold.Begun, r.ClaimBy.Time()
	}
	return shown
}

// Reservation shows one, also if it was over a short time ago; false if it is unknown.
func (v *view) Reservation(namespace, id string) (shown leasehold.Reservation, owner *access.Owner, ok bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return shown, nil, false
	}
	r := sp.reservations.Get(id)
	if r == nil {
		return shown, nil, false
	}
	return v.reservation(sp, r), r.Owner, true
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
	sp.reservations.EachSeries("", func(r *reservation.Series) bool {
		v.work.take(LeaseCost)
		if show == nil || show(r.Resource, r.Owner) {
			list = append(list, leasehold.Series{Namespace: namespace, ID: r.ID, Resource: r.Resource,
				Holder: r.Holder, Reason: r.Reason, Slots: int(r.Slots), Select: r.Select, Rule: r.Rule,
				Expanded: r.Expanded.Time()})
		}
		return true
	})
	return list
}

// Date returns what the calendar says.
func (v *view) Date() reservation.Moment { return v.s.date }

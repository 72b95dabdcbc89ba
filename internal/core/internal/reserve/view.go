package reserve

import (
	"math"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// List shows reservations that are not over by resource and by when they begin. next is where to continue, and empty
// at the end.
func (s *reservations) List(l kernel.Look, q *kernel.ReservationQuery) (list []leasehold.Reservation, next string) {
	until := q.Until
	if until == 0 {
		until = math.MaxInt64
	}
	last, after := q.After, placeOf(q.After)
	look := func(resource string) bool {
		if !strings.HasPrefix(resource, q.Prefix) || q.Resource != "" && resource != q.Resource {
			return false
		}
		if !l.Take(kernel.LeaseCost) && resource != after.Resource {
			next = placeText(&reservation.Reservation{Resource: resource, From: math.MinInt64})
		}
		return next == ""
	}
	s.table(l.Namespace).ByDay(max(q.Prefix, q.Resource, after.Resource), q.Since, until, look,
		func(r *reservation.Reservation) bool {
			switch {
			case q.After != "" && !after.Before(r):
				return true
			case len(list) == q.Most || !l.Take(kernel.LeaseCost) && last != q.After:
				next = last
				return false
			}
			last = placeText(r)
			if matches(q, r) && (q.Show == nil || q.Show(r.Resource, r.Owner)) {
				list = append(list, shown(l.Namespace, r))
			}
			return true
		})
	return list, next
}

// matches reports whether a reservation is among those that are asked for, wherever and whenever it is.
func matches(q *kernel.ReservationQuery, r *reservation.Reservation) bool {
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

// shown is one as people see it: its state follows from its claim.
func shown(n kernel.Namespace, r *reservation.Reservation) leasehold.Reservation {
	v := leasehold.Reservation{Namespace: n.Name(), ID: r.ID, Resource: r.Resource, Holder: r.Holder,
		Reason: r.Reason, Slots: int(r.Slots), Select: r.Select, From: r.From.Time(), Until: r.Until.Time(),
		State: leasehold.Planned, Lease: r.Lease, Units: r.Units, Series: r.Series, Why: r.Why}
	claim := n.Claim(r.Lease)
	switch {
	case r.Over != 0:
		v.State = leasehold.Over
	case claim != nil && claim.Waiting():
		v.State = leasehold.Claimed
	case claim != nil:
		v.State, v.Units = leasehold.InUse, unitsOf(claim)
	case r.Begun:
		v.State, v.ClaimBy = leasehold.Begun, r.ClaimBy.Time()
	}
	return v
}

// unitsOf returns those of a pool that a lease has.
func unitsOf(c *kernel.Claim) []string {
	if c.Terms == nil {
		return nil
	}
	return c.Terms.Units
}

// Show shows one, also if it was over a short time ago; false if it is unknown.
func (s *reservations) Show(n kernel.Namespace, id string) (v leasehold.Reservation, owner *access.Owner, ok bool) {
	r := s.Get(n, id)
	if r == nil {
		return v, nil, false
	}
	return shown(n, r), r.Owner, true
}

// Series shows recurring reservations by id, but those for which show returns false: there are at most
// leasehold.MaxSeries.
func (s *reservations) Series(
	l kernel.Look, show func(path string, owner *access.Owner) bool,
) (list []leasehold.Series) {
	s.table(l.Namespace).EachSeries("", func(r *reservation.Series) bool {
		l.Take(kernel.LeaseCost)
		if show == nil || show(r.Resource, r.Owner) {
			list = append(list, leasehold.Series{Namespace: l.Name(), ID: r.ID, Resource: r.Resource,
				Holder: r.Holder, Reason: r.Reason, Slots: int(r.Slots), Select: r.Select, Rule: r.Rule,
				Expanded: r.Expanded.Time()})
		}
		return true
	})
	return list
}

package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A reservation is a promise that a resource will be kept for somebody from a moment of the calendar on. It is no
// lease, and gives nobody a right: it is claimed by an acquire, whose grant is like any other. What happens when its
// moment comes is in reserve_date.go, and how it is claimed in reserve_claim.go.

// reserve plans a reservation, or a series of them. The same once more changes nothing: no revision, no event.
func (t *turn) reserve(c *Reserve) Answer {
	if c.Extends() {
		return t.extendSeries(c)
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	if again, failure := sameReservation(sp, c); again || failure != nil {
		if t.plants(CancelledIsMade) {
			failure = nil
		}
		return Answer{Err: failure}
	}
	if failure := t.mayReserve(sp, c); failure != nil {
		return Answer{Err: failure}
	}
	list, failure := t.plan(sp, c)
	if failure != nil {
		return Answer{Err: failure}
	}
	if c.Rule != nil {
		sp.reservations.SetSeries(&reservation.Series{ID: c.ID, Resource: c.Resource, Holder: c.Holder,
			Reason: c.Reason, Slots: uint32(c.Slots), Select: c.Select, Rule: *c.Rule, Expanded: c.To,
			Owner: t.permit.OwnerOf(takeVerb(c.Slots), sp.name, c.Resource, c.Holder)})
	}
	for _, r := range list {
		t.addReservation(sp, r)
	}
	if len(list) == 0 {
		t.emit(sp, &leasehold.Event{Kind: leasehold.Reserved, Resource: c.Resource, ID: c.ID, Holder: c.Holder,
			Reason: c.Reason})
	}
	t.keepDates()
	return Answer{}
}

// sameReservation reports whether an id names what is asked for already, and refuses one that names something else, or
// what is over: a request that comes again must not be told that it has what was taken back since.
func sameReservation(sp *space, c *Reserve) (again bool, failure *leasehold.Error) {
	r, series := sp.reservations.Get(c.ID), sp.reservations.SeriesOf(c.ID)
	switch {
	case r == nil && series == nil:
		return false, seriesOver(sp, c.ID)
	case r != nil && c.Rule == nil && r.Resource == c.Resource && r.Holder == c.Holder &&
		int(r.Slots) == c.Slots && (c.From == 0 || c.From == r.From) && r.From.Add(c.Length) == r.Until:
		return r.Over == 0, reservationOver(r)
	case series != nil && c.Rule != nil && series.Resource == c.Resource && series.Holder == c.Holder &&
		int(series.Slots) == c.Slots && sameRule(&series.Rule, c.Rule):
		return true, nil
	}
	return false, refuse(leasehold.Refused, "reservation id %q is used already: choose another", c.ID).Err
}

// reservationOver refuses what is asked of a reservation that is over; nil if it is not.
func reservationOver(r *reservation.Reservation) *leasehold.Error {
	if r.Over == 0 {
		return nil
	}
	return refuse(leasehold.Lost, "reservation %s is over: %s", r.ID, r.Why).Err
}

// seriesOver refuses the id of a series that is over, for as long as one of its occurrences is remembered.
func seriesOver(sp *space, id string) (failure *leasehold.Error) {
	sp.reservations.Occurrences(id, func(*reservation.Reservation) bool {
		failure = refuse(leasehold.Lost, "recurring reservation %s is over: choose another id", id).Err
		return false
	})
	return failure
}

// reservedAgain answers a request to reserve that was granted before and comes again. The request may be remembered for
// longer than what it made.
func (s *State) reservedAgain(sp *space, c *Reserve) Answer {
	if c.Extends() {
		return Answer{}
	}
	again, failure := sameReservation(sp, c)
	if !again && failure == nil {
		return refuse(leasehold.Lost, "reservation %q was over long ago: choose another id", c.ID)
	}
	return Answer{Err: failure}
}

// sameRule compares rules: moments may be equal and not the same value.
func sameRule(a, b *leasehold.Rule) bool {
	return a.Zone == b.Zone && a.Days == b.Days && a.At == b.At && a.Length == b.Length && a.Until.Equal(b.Until)
}

// mayReserve refuses what could never be kept, and what would be too much.
func (s *State) mayReserve(sp *space, c *Reserve) *leasehold.Error {
	d := sp.definition(c.Resource)
	capacity := sp.capacity(c.Resource, nil, d)
	item := Item{Resource: c.Resource, ID: c.ID, Slots: c.Slots, Select: c.Select}
	switch {
	case c.Slots > 0 && capacity == 0:
		return refuse(leasehold.Refused, "nobody said how many slots %s has: define its capacity, or reserve all of it",
			c.Resource).Err
	case c.Slots > 0 && c.Slots > capacity:
		return s.tooManySlots(item, capacity)
	case d.HoldLimit != 0 && c.Length > d.HoldLimit:
		return refuse(leasehold.Refused, "%s is held for at most %s, and this reservation is %s long", c.Resource,
			left(Time(d.HoldLimit)), left(Time(c.Length))).Err
	case sp.mirrored(c.Resource) != "":
		return refuse(leasehold.Refused, "%s shows its waiters in the order in which they came, as records below %s: "+
			"nobody goes before others", c.Resource, sp.mirrored(c.Resource)).Err
	case sp.reservations.Len()+max(1, len(c.Starts)) > leasehold.MaxReservations:
		return refuse(leasehold.Limited, "the namespace has %d reservations: at most %d are allowed",
			sp.reservations.Len(), leasehold.MaxReservations).Err
	case sp.reservations.Of(c.Resource)+max(1, len(c.Starts)) > leasehold.MaxReservationsOf:
		return refuse(leasehold.Limited, "%s has %d reservations: at most %d are allowed", c.Resource,
			sp.reservations.Of(c.Resource), leasehold.MaxReservationsOf).Err
	case sp.isPart(c.Resource, uint32(c.Slots)) &&
		sp.reservations.Units(c.Resource)+unitsInAll(c) > leasehold.MaxPlannedUnits:
		return tooManyPlanned(sp, c)
	case c.Rule != nil && sp.reservations.Recurring() >= leasehold.MaxSeries:
		return refuse(leasehold.Limited, "the namespace has %d recurring reservations: at most %d are allowed",
			sp.reservations.Recurring(), leasehold.MaxSeries).Err
	}
	return s.maySelect(sp, &Acquire{}, item)
}

// tooManyPlanned refuses to plan more units of a pool: whoever reserves some is compared with those who have others.
func tooManyPlanned(sp *space, c *Reserve) *leasehold.Error {
	return refuse(leasehold.Limited, "%d more units of %s are asked for, and %d are planned for its reservations: at "+
		"most %d are allowed, those of each reservation counted", unitsInAll(c), c.Resource,
		sp.reservations.Units(c.Resource), leasehold.MaxPlannedUnits).Err
}

// unitsInAll is how many units of a pool a command asks for, those of each of its reservations counted.
func unitsInAll(c *Reserve) int { return c.Slots * max(1, len(c.Starts)) }

// latePlan is how long ago a reservation may begin: the clocks of those who ask are never quite right.
const latePlan = time.Minute

// plan makes the reservations that a command asks for, all or none, and changes nothing.
func (l *look) plan(sp *space, c *Reserve) (list []*reservation.Reservation, failure *leasehold.Error) {
	starts := c.Starts
	if c.Rule == nil {
		starts = []reservation.Moment{c.From}
		if c.From == 0 {
			starts[0] = l.date
		}
	}
	for i, from := range starts {
		switch {
		case from < l.date.Add(-latePlan):
			return nil, refuse(leasehold.Refused, "%s is past: a reservation begins now or later",
				shownMoment(from)).Err
		case from > l.date.Add(leasehold.ReservationHorizon):
			return nil, refuse(leasehold.Refused, "%s is too far away: a reservation begins within a year",
				shownMoment(from)).Err
		case i > 0 && from < starts[i-1].Add(c.Length):
			return nil, refuse(leasehold.Refused, "this reservation would begin again at %s, before it ends: make it "+
				"shorter", shownMoment(from)).Err
		}
		r := l.reservation(sp, c, from)
		if failure := l.conflicts(sp, r); failure != nil {
			return nil, failure
		}
		list = append(list, r)
	}
	return list, nil
}

// reservation makes one of those that a command asks for. An occurrence has an id that follows from its start, so that
// it is known again.
func (l *look) reservation(sp *space, c *Reserve, from reservation.Moment) *reservation.Reservation {
	r := &reservation.Reservation{ID: c.ID, Resource: c.Resource, Holder: c.Holder, Reason: c.Reason,
		Slots: uint32(c.Slots), Select: c.Select, From: from, Until: from.Add(c.Length),
		Owner: l.permit.OwnerOf(takeVerb(c.Slots), sp.name, c.Resource, c.Holder)}
	if c.Rule != nil {
		r.ID, r.Series = reservation.Occurrence(c.ID, from), c.ID
	}
	return r
}

// conflicts refuses a reservation for which there is no room, with the next times at which there is. Of a pool it also
// plans the units.
func (l *look) conflicts(sp *space, r *reservation.Reservation) *leasehold.Error {
	l.work.take(l.poolCost(sp, r.Resource))
	fits, by := l.planned(sp, r, r.From, r.Until)
	if fits {
		return nil
	}
	if failure := l.neverPlanned(sp, r); failure != nil {
		return failure
	}
	length := time.Duration(r.Until - r.From)
	free := sp.reservations.Free(r.Resource, r.From, length, 3, func(from, until reservation.Moment) bool {
		if l.work.spent() {
			return false // they are a help, and not worth that others wait for it
		}
		l.work.take(l.poolCost(sp, r.Resource))
		another := *r
		ok, _ := l.planned(sp, &another, from, until)
		return ok
	})
	why := fmt.Sprintf("%s has too little left from %s to %s", r.Resource, shownMoment(r.From), shownMoment(r.Until))
	if by != nil && l.mayShow(sp, r.Resource) {
		why = fmt.Sprintf("%s is reserved by %s%s from %s to %s", r.Resource, by.Holder, because(by.Reason),
			shownMoment(by.From), shownMoment(by.Until))
	}
	var times []string
	for _, at := range free {
		times = append(times, shownMoment(at))
	}
	if len(times) > 0 {
		why += "; free for " + left(Time(length)) + " from " + strings.Join(times, ", ")
	}
	return refuse(leasehold.Held, "%s", why).Err
}

// neverPlanned refuses a reservation of units that a pool does not have, at any time.
func (l *look) neverPlanned(sp *space, r *reservation.Reservation) *leasehold.Error {
	if !sp.isPart(r.Resource, r.Slots) {
		return nil
	}
	ask := &pool.Ask{N: int(r.Slots)}
	if r.Select != nil {
		selected, err := compileAsk(int(r.Slots), r.Select, nil)
		if err != nil {
			return nil // it was checked before
		}
		ask = selected
	}
	most := sp.pools.Most(r.Resource, ask)
	if most >= ask.N {
		return nil
	}
	never := sp.neverEnough(r.Resource, ask, most)
	return refuse(leasehold.Refused, "%s: this reservation %s", r.Resource, never).Err
}

// insertAll adds names to a set.
func insertAll(set *btree.Set[string], names []string) {
	for _, name := range names {
		set.Insert(name)
	}
}

// askOf returns what a reservation asks for of a pool. The text was checked when it was made.
func askOf(r *reservation.Reservation) *pool.Ask {
	sel := r.Select
	if sel == nil {
		sel = &leasehold.Select{}
	}
	ask, _ := compileAsk(int(r.Slots), sel, nil)
	return ask
}

// shownMoment writes a moment in a message.
func shownMoment(m reservation.Moment) string { return m.Time().Format(time.RFC3339) }

// addReservation files a reservation for which there is room, and tells of it.
func (t *turn) addReservation(sp *space, r *reservation.Reservation) {
	t.setReservation(sp, r)
	event := reservationEvent(r, leasehold.Reserved)
	event.Reason = r.Reason
	t.emit(sp, event)
}

// reservationEvent returns an event about a reservation, which its id names.
func reservationEvent(r *reservation.Reservation, kind leasehold.Kind) *leasehold.Event {
	return &leasehold.Event{Kind: kind, Resource: r.Resource, ID: r.ID, Holder: r.Holder, Until: r.Until.Time(),
		Owner: r.Owner}
}

// extendSeries plans more occurrences of a series. One that conflicts is left out. Two leaders may both ask for it:
// only the one that knows how far the series was planned is heard. Where there is no room for more reservations, it is
// planned no further for now.
func (t *turn) extendSeries(c *Reserve) Answer {
	sp := t.space(c.Namespace)
	if sp == nil {
		return Answer{}
	}
	series := sp.reservations.SeriesOf(c.ID)
	if series == nil || series.Expanded != c.After {
		return Answer{} // it was cancelled, or somebody did it
	}
	if c.To > t.date.Add(leasehold.ReservationsPlanned+latePlan) {
		return refuse(leasehold.Refused, "%s is too far ahead to plan: the clock of the server that asks is ahead of "+
			"the leader's, where it is %s", shownMoment(c.To), shownMoment(t.date))
	}
	further := *series
	further.Expanded = c.To
	for _, from := range c.Starts {
		r := &reservation.Reservation{ID: reservation.Occurrence(series.ID, from), Resource: series.Resource,
			Holder: series.Holder, Reason: series.Reason, Slots: series.Slots, Select: series.Select, From: from,
			Until: from.Add(series.Rule.Length), Series: series.ID, Owner: series.Owner}
		if from < t.date.Add(-latePlan) || sp.reservations.Get(r.ID) != nil {
			continue
		}
		if sp.fullPlan(r) {
			further.Expanded = from // and tried again from there: what others reserved must not drop it for good
			break
		}
		if failure := t.conflicts(sp, r); failure != nil {
			event := reservationEvent(r, leasehold.ReservationCancelled)
			event.Reason = failure.Message
			t.emit(sp, event)
			continue
		}
		t.addReservation(sp, r)
	}
	sp.reservations.SetSeries(&further)
	t.endSeries(sp, series.ID)
	t.keepDates()
	return Answer{}
}

// fullPlan reports whether there is no room for one more reservation, whenever it is.
func (sp *space) fullPlan(r *reservation.Reservation) bool {
	return sp.reservations.Len() >= leasehold.MaxReservations ||
		sp.reservations.Of(r.Resource) >= leasehold.MaxReservationsOf || sp.isPart(r.Resource, r.Slots) &&
		sp.reservations.Units(r.Resource)+int(r.Slots) > leasehold.MaxPlannedUnits
}

// endSeries forgets a series of which nothing is left to come.
func (s *State) endSeries(sp *space, id string) {
	series := sp.reservations.SeriesOf(id)
	if series == nil || series.Ends() == 0 || series.Expanded < series.Ends() {
		return
	}
	more := false
	sp.reservations.Occurrences(id, func(r *reservation.Reservation) bool {
		more = r.Over == 0
		return !more
	})
	if !more {
		sp.reservations.DeleteSeries(id)
	}
}

// cancelReservation takes a reservation back, or a series and what it has still to come. A lease that claimed one
// stays.
func (t *turn) cancelReservation(c *CancelReservation) Answer {
	sp := t.space(c.Namespace)
	if sp == nil {
		return noReservation(c.ID)
	}
	if sp.reservations.SeriesOf(c.ID) != nil {
		return t.cancelSeries(sp, c)
	}
	r := sp.reservations.Get(c.ID)
	switch {
	case r == nil:
		return noReservation(c.ID)
	case r.Over != 0:
		return Answer{} // an earlier try did it, or it ended by itself
	}
	t.cancelOne(sp, r, c)
	t.endSeries(sp, r.Series)
	return Answer{}
}

// noReservation answers a request about a reservation that is not there.
func noReservation(id string) Answer {
	return refuse(leasehold.NotFound, "reservation %q is unknown: it never was, or it was over long ago", id)
}

// cancelSeries ends a series. What has begun is in use, or will be freed by itself.
func (t *turn) cancelSeries(sp *space, c *CancelReservation) Answer {
	series := sp.reservations.SeriesOf(c.ID)
	var list []*reservation.Reservation
	sp.reservations.Occurrences(c.ID, func(r *reservation.Reservation) bool {
		if r.Over == 0 && !r.Begun {
			list = append(list, r)
		}
		return true
	})
	sp.reservations.DeleteSeries(c.ID)
	for _, r := range list {
		t.cancelOne(sp, r, c)
	}
	if len(list) == 0 {
		t.emit(sp, &leasehold.Event{Kind: leasehold.ReservationCancelled, Resource: series.Resource, ID: series.ID,
			Holder: series.Holder, By: c.By, Reason: c.Reason, Owner: series.Owner})
	}
	return Answer{}
}

// cancelOne ends a reservation early and records who did so.
func (t *turn) cancelOne(sp *space, r *reservation.Reservation, c *CancelReservation) {
	event := reservationEvent(r, leasehold.ReservationCancelled)
	event.By, event.Reason = c.By, c.Reason
	t.endReservation(sp, r, "cancelled", event)
}

// Package reserve keeps resources for somebody from a moment of the calendar on. A reservation is a promise, and no
// lease: it gives nobody a right, and is claimed by an acquire, whose grant is like any other. What is planned of a
// resource, and when, is in package reservation; this one decides what is planned, what becomes of it when its moment
// comes (date.go), and how it is claimed (claim.go).
//
// It asks the kernel about pools, since units are planned and kept as slots are, and ends or grants nothing itself.
package reserve

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// Reserve plans a reservation, or a series of them. The same once more changes nothing: no revision, no event.
func (s *reservations) Reserve(k kernel.Turn, c *kernel.Reserve) kernel.Answer {
	if again, failure := s.same(k.Namespace, c); again || failure != nil {
		return kernel.Answer{Err: failure}
	}
	if failure := s.mayReserve(k, c); failure != nil {
		return kernel.Answer{Err: failure}
	}
	list, failure := s.plan(k, c)
	if failure != nil {
		return kernel.Answer{Err: failure}
	}
	if c.Rule != nil {
		s.open(k.Name()).SetSeries(&reservation.Series{ID: c.ID, Resource: c.Resource, Holder: c.Holder,
			Reason: c.Reason, Slots: uint32(c.Slots), Select: c.Select, Rule: *c.Rule, Expanded: c.To,
			Owner: k.OwnerOf(c.Resource, c.Holder, c.Slots)})
	}
	for _, r := range list {
		s.add(k, r)
	}
	if len(list) == 0 {
		k.Emit(&leasehold.Event{Kind: leasehold.Reserved, Resource: c.Resource, ID: c.ID, Holder: c.Holder,
			Reason: c.Reason})
	}
	s.KeepDates(k)
	return kernel.Answer{}
}

// same reports whether an id names what is asked for already, and refuses one that names something else, or what is
// over: a request that comes again must not be told that it has what was taken back since.
func (s *reservations) same(n kernel.Namespace, c *kernel.Reserve) (again bool, failure *leasehold.Error) {
	r, series := s.table(n).Get(c.ID), s.table(n).SeriesOf(c.ID)
	switch {
	case r == nil && series == nil:
		return false, s.seriesOver(n, c.ID)
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
func (s *reservations) seriesOver(n kernel.Namespace, id string) (failure *leasehold.Error) {
	s.table(n).Occurrences(id, func(*reservation.Reservation) bool {
		failure = refuse(leasehold.Lost, "recurring reservation %s is over: choose another id", id).Err
		return false
	})
	return failure
}

// Again answers a request to reserve that was granted before and comes again. The request may be remembered for longer
// than what it made.
func (s *reservations) Again(n kernel.Namespace, c *kernel.Reserve) kernel.Answer {
	if c.Extends() {
		return kernel.Answer{}
	}
	again, failure := s.same(n, c)
	if !again && failure == nil {
		return refuse(leasehold.Lost, "reservation %q was over long ago: choose another id", c.ID)
	}
	return kernel.Answer{Err: failure}
}

// sameRule compares rules: moments may be equal and not the same value.
func sameRule(a, b *leasehold.Rule) bool {
	return a.Zone == b.Zone && a.Days == b.Days && a.At == b.At && a.Length == b.Length && a.Until.Equal(b.Until)
}

// mayReserve refuses what could never be kept, and what would be too much.
func (s *reservations) mayReserve(k kernel.Turn, c *kernel.Reserve) *leasehold.Error {
	d, capacity, planned := k.Definition(c.Resource), k.Capacity(c.Resource, nil), s.table(k.Namespace)
	item := kernel.Item{Resource: c.Resource, ID: c.ID, Slots: c.Slots, Select: c.Select}
	switch {
	case c.Slots > 0 && capacity == 0:
		return refuse(leasehold.Refused, "nobody said how many slots %s has: define its capacity, or reserve all of it",
			c.Resource).Err
	case c.Slots > 0 && c.Slots > capacity:
		return k.TooManySlots(item, capacity)
	case d.HoldLimit != 0 && c.Length > d.HoldLimit:
		return refuse(leasehold.Refused, "%s is held for at most %s, and this reservation is %s long", c.Resource,
			timeline.Text(d.HoldLimit), timeline.Text(c.Length)).Err
	case k.Mirrored(c.Resource) != "":
		return refuse(leasehold.Refused, "%s shows its waiters in the order in which they came, as records below %s: "+
			"nobody goes before others", c.Resource, k.Mirrored(c.Resource)).Err
	case planned.Len()+max(1, len(c.Starts)) > leasehold.MaxReservations:
		return refuse(leasehold.Limited, "the namespace has %d reservations: at most %d are allowed",
			planned.Len(), leasehold.MaxReservations).Err
	case planned.Of(c.Resource)+max(1, len(c.Starts)) > leasehold.MaxReservationsOf:
		return refuse(leasehold.Limited, "%s has %d reservations: at most %d are allowed", c.Resource,
			planned.Of(c.Resource), leasehold.MaxReservationsOf).Err
	case k.InUnits(c.Resource, uint32(c.Slots)) &&
		planned.Units(c.Resource)+unitsInAll(c) > leasehold.MaxPlannedUnits:
		return tooManyPlanned(c, planned.Units(c.Resource))
	case c.Rule != nil && planned.Recurring() >= leasehold.MaxSeries:
		return refuse(leasehold.Limited, "the namespace has %d recurring reservations: at most %d are allowed",
			planned.Recurring(), leasehold.MaxSeries).Err
	}
	return k.MaySelect(item)
}

// tooManyPlanned refuses to plan more units of a pool: whoever reserves some is compared with those who have others.
func tooManyPlanned(c *kernel.Reserve, planned int) *leasehold.Error {
	return refuse(leasehold.Limited, "%d more units of %s are asked for, and %d are planned for its reservations: at "+
		"most %d are allowed, those of each reservation counted", unitsInAll(c), c.Resource, planned,
		leasehold.MaxPlannedUnits).Err
}

// unitsInAll is how many units of a pool a command asks for, those of each of its reservations counted.
func unitsInAll(c *kernel.Reserve) int { return c.Slots * max(1, len(c.Starts)) }

// latePlan is how long ago a reservation may begin: the clocks of those who ask are never quite right.
const latePlan = time.Minute

// plan makes the reservations that a command asks for, all or none, and changes nothing.
func (s *reservations) plan(
	k kernel.Turn, c *kernel.Reserve,
) (list []*reservation.Reservation, failure *leasehold.Error) {
	starts := c.Starts
	if c.Rule == nil {
		starts = []reservation.Moment{c.From}
		if c.From == 0 {
			starts[0] = k.Date()
		}
	}
	for i, from := range starts {
		switch {
		case from < k.Date().Add(-latePlan):
			return nil, refuse(leasehold.Refused, "%s is past: a reservation begins now or later",
				from.Text()).Err
		case from > k.Date().Add(leasehold.ReservationHorizon):
			return nil, refuse(leasehold.Refused, "%s is too far away: a reservation begins within a year",
				from.Text()).Err
		case i > 0 && from < starts[i-1].Add(c.Length):
			return nil, refuse(leasehold.Refused, "this reservation would begin again at %s, before it ends: make it "+
				"shorter", from.Text()).Err
		}
		r := newReservation(k, c, from)
		if failure := s.conflicts(k, r); failure != nil {
			return nil, failure
		}
		list = append(list, r)
	}
	return list, nil
}

// newReservation returns one of those that a command asks for. An occurrence has an id that follows from its start, so
// that it is known again.
func newReservation(k kernel.Turn, c *kernel.Reserve, from reservation.Moment) *reservation.Reservation {
	r := &reservation.Reservation{ID: c.ID, Resource: c.Resource, Holder: c.Holder, Reason: c.Reason,
		Slots: uint32(c.Slots), Select: c.Select, From: from, Until: from.Add(c.Length),
		Owner: k.OwnerOf(c.Resource, c.Holder, c.Slots)}
	if c.Rule != nil {
		r.ID, r.Series = reservation.Occurrence(c.ID, from), c.ID
	}
	return r
}

// conflicts refuses a reservation for which there is no room, with the next times at which there is. Of a pool it also
// plans the units.
func (s *reservations) conflicts(k kernel.Turn, r *reservation.Reservation) *leasehold.Error {
	k.Take(k.PoolCost(r.Resource))
	fits, by := s.planned(k, r, r.From, r.Until)
	if fits {
		return nil
	}
	if failure := neverPlanned(k, r); failure != nil {
		return failure
	}
	length := time.Duration(r.Until - r.From)
	free := s.table(k.Namespace).Free(r.Resource, r.From, length, 3, func(from, until reservation.Moment) bool {
		if k.Spent() {
			return false // they are a help, and not worth that others wait for it
		}
		k.Take(k.PoolCost(r.Resource))
		another := *r
		ok, _ := s.planned(k, &another, from, until)
		return ok
	})
	why := fmt.Sprintf("%s has too little left from %s to %s", r.Resource, r.From.Text(), r.Until.Text())
	if by != nil && k.MayShow(r.Resource) {
		why = r.Resource + " is " + kernel.ReservedText(by)
	}
	var times []string
	for _, at := range free {
		times = append(times, at.Text())
	}
	if len(times) > 0 {
		why += "; free for " + timeline.Text(length) + " from " + strings.Join(times, ", ")
	}
	return refuse(leasehold.Held, "%s", why).Err
}

// neverPlanned refuses a reservation of units that a pool does not have, at any time.
func neverPlanned(k kernel.Turn, r *reservation.Reservation) *leasehold.Error {
	if !k.InUnits(r.Resource, r.Slots) {
		return nil
	}
	ask := &pool.Ask{N: int(r.Slots)}
	if r.Select != nil {
		selected, err := kernel.CompileAsk(int(r.Slots), r.Select, nil)
		if err != nil {
			return nil // it was checked before
		}
		ask = selected
	}
	most := k.MostUnits(r.Resource, ask)
	if most >= ask.N {
		return nil
	}
	never := k.NeverEnough(r.Resource, ask, most)
	return refuse(leasehold.Refused, "%s: this reservation %s", r.Resource, never).Err
}

// askOf returns what a reservation asks for of a pool. The text was checked when it was made.
func askOf(r *reservation.Reservation) *pool.Ask {
	sel := r.Select
	if sel == nil {
		sel = &leasehold.Select{}
	}
	ask, _ := kernel.CompileAsk(int(r.Slots), sel, nil)
	return ask
}

// add files a reservation for which there is room, and tells of it.
func (s *reservations) add(k kernel.Turn, r *reservation.Reservation) {
	s.set(k, r)
	event := eventOf(r, leasehold.Reserved)
	event.Reason = r.Reason
	k.Emit(event)
}

// eventOf returns an event about a reservation, which its id names.
func eventOf(r *reservation.Reservation, kind leasehold.Kind) *leasehold.Event {
	return &leasehold.Event{Kind: kind, Resource: r.Resource, ID: r.ID, Holder: r.Holder, Until: r.Until.Time(),
		Owner: r.Owner}
}

// Extend plans more occurrences of a series. One that conflicts is left out. Two leaders may both ask for it: only the
// one that knows how far the series was planned is heard. Where there is no room for more reservations, it is planned
// no further for now.
func (s *reservations) Extend(k kernel.Turn, c *kernel.Reserve) kernel.Answer {
	series := s.table(k.Namespace).SeriesOf(c.ID)
	if series == nil || series.Expanded != c.After {
		return kernel.Answer{} // it was cancelled, or somebody did it
	}
	if c.To > k.Date().Add(leasehold.ReservationsPlanned+latePlan) {
		return refuse(leasehold.Refused, "%s is too far ahead to plan: the clock of the server that asks is ahead of "+
			"the leader's, where it is %s", c.To.Text(), k.Date().Text())
	}
	further := *series
	further.Expanded = c.To
	for _, from := range c.Starts {
		r := &reservation.Reservation{ID: reservation.Occurrence(series.ID, from), Resource: series.Resource,
			Holder: series.Holder, Reason: series.Reason, Slots: series.Slots, Select: series.Select, From: from,
			Until: from.Add(series.Rule.Length), Series: series.ID, Owner: series.Owner}
		if from < k.Date().Add(-latePlan) || s.table(k.Namespace).Get(r.ID) != nil {
			continue
		}
		if s.full(k.Namespace, r) {
			further.Expanded = from // and tried again from there: what others reserved must not drop it for good
			break
		}
		if failure := s.conflicts(k, r); failure != nil {
			event := eventOf(r, leasehold.ReservationCancelled)
			event.Reason = failure.Message
			k.Emit(event)
			continue
		}
		s.add(k, r)
	}
	s.open(k.Name()).SetSeries(&further)
	s.endSeries(k, series.ID)
	s.KeepDates(k)
	return kernel.Answer{}
}

// full reports whether there is no room for one more reservation, whenever it is.
func (s *reservations) full(n kernel.Namespace, r *reservation.Reservation) bool {
	planned := s.table(n)
	return planned.Len() >= leasehold.MaxReservations || planned.Of(r.Resource) >= leasehold.MaxReservationsOf ||
		n.InUnits(r.Resource, r.Slots) && planned.Units(r.Resource)+int(r.Slots) > leasehold.MaxPlannedUnits
}

// endSeries forgets a series of which nothing is left to come.
func (s *reservations) endSeries(k kernel.Turn, id string) {
	series := s.table(k.Namespace).SeriesOf(id)
	if series == nil || series.Ends() == 0 || series.Expanded < series.Ends() {
		return
	}
	more := false
	s.table(k.Namespace).Occurrences(id, func(r *reservation.Reservation) bool {
		more = r.Over == 0
		return !more
	})
	if !more {
		s.dropSeries(k, id)
	}
}

// Cancel takes a reservation back, or a series and what it has still to come. A lease that claimed one stays.
func (s *reservations) Cancel(k kernel.Turn, c *kernel.CancelReservation) kernel.Answer {
	if s.table(k.Namespace).SeriesOf(c.ID) != nil {
		return s.cancelSeries(k, c)
	}
	r := s.table(k.Namespace).Get(c.ID)
	switch {
	case r == nil:
		return kernel.NoReservation(c.ID)
	case r.Over != 0:
		return kernel.Answer{} // an earlier try did it, or it ended by itself
	}
	s.cancelOne(k, r, c)
	s.endSeries(k, r.Series)
	return kernel.Answer{}
}

// cancelSeries ends a series. What has begun is in use, or will be freed by itself.
func (s *reservations) cancelSeries(k kernel.Turn, c *kernel.CancelReservation) kernel.Answer {
	series := s.table(k.Namespace).SeriesOf(c.ID)
	var list []*reservation.Reservation
	s.table(k.Namespace).Occurrences(c.ID, func(r *reservation.Reservation) bool {
		if r.Over == 0 && !r.Begun {
			list = append(list, r)
		}
		return true
	})
	s.dropSeries(k, c.ID)
	for _, r := range list {
		s.cancelOne(k, r, c)
	}
	if len(list) == 0 {
		k.Emit(&leasehold.Event{Kind: leasehold.ReservationCancelled, Resource: series.Resource, ID: series.ID,
			Holder: series.Holder, By: c.By, Reason: c.Reason, Owner: series.Owner})
	}
	return kernel.Answer{}
}

// cancelOne ends a reservation early and records who did so.
func (s *reservations) cancelOne(k kernel.Turn, r *reservation.Reservation, c *kernel.CancelReservation) {
	event := eventOf(r, leasehold.ReservationCancelled)
	event.By, event.Reason = c.By, c.Reason
	s.end(k, r, "cancelled", event)
}

func refuse(code leasehold.Code, format string, args ...any) kernel.Answer {
	return kernel.Answer{Err: kernel.Refusal(code, format, args...)}
}

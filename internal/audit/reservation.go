package audit

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What reservations set off is due to the calendar, whatever command happened to be the first after their moment.

// byCalendar reports whether an event is due to a reservation whose moment came, and the command only met it.
func (d *operations) byCalendar(e *leasehold.Event) bool {
	switch e.Kind {
	case leasehold.ReservationBegun, leasehold.ReservationFreed:
		return true
	case leasehold.Asked:
		return d.asked.Verb != "ask"
	case leasehold.BreakSet:
		return d.asked.Verb != "break"
	case leasehold.Moved:
		return d.asked.Verb != "move"
	}
	return false
}

// reservationVerb is verb for what happens to reservations.
func (d *operations) reservationVerb(e *leasehold.Event) string {
	switch e.Kind {
	case leasehold.Reserved:
		return "reserve"
	case leasehold.ReservationBegun:
		return BeginReservation
	case leasehold.ReservationFreed:
		return FreeReservation
	case leasehold.ReservationCancelled:
		return "cancel-reservation"
	}
	return d.asked.Verb
}

// describeReservation is describe for what is done to reservations. That a server plans more of a series is nobody's
// operation: its events tell.
func describeReservation(c core.Command) Line {
	switch c := c.(type) {
	case *core.Reserve:
		if c.Extends() {
			return Line{}
		}
		return Line{Verb: "reserve", Namespace: c.Namespace, Resource: c.Resource, ID: c.ID, Holder: c.Holder,
			Reason: c.Reason, Actor: c.Holder}
	case *core.CancelReservation:
		return Line{Verb: "cancel-reservation", Namespace: c.Namespace, ID: c.ID, Reason: c.Reason, By: c.By,
			Actor: c.By}
	}
	return Line{Verb: strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", c), "*core."))}
}

package audit

import "github.com/leasehold/leasehold"

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

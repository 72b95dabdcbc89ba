package command

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Reserve plans a resource, or slots of it, for a time that comes; with a rule, again and again.
type Reserve struct {
	Namespace string
	ID        string // names the reservation, or the series
	Resource  string
	Slots     int // 0: all
	Select    *leasehold.Select
	Holder    string
	Reason    string
	From      reservation.Moment // 0: now
	Length    time.Duration
	Request   Request

	// Rule makes it a series. Starts are its occurrences up to the moment To: the core knows no time zones. After says
	// that the series is there already and planned up to that moment, so only ID, Starts and To are said.
	Rule   *leasehold.Rule
	Starts []reservation.Moment
	After  reservation.Moment
	To     reservation.Moment
}

// CancelReservation takes a reservation back, or a series with all its occurrences that have not begun.
type CancelReservation struct {
	Namespace string
	ID        string
	By        string
	Reason    string
	Request   Request
}

func (c *Reserve) space() string              { return c.Namespace }
func (c *Reserve) request() Request           { return c.Request }
func (c *Reserve) subject() string            { return "reserve " + c.Resource }
func (c *CancelReservation) space() string    { return c.Namespace }
func (c *CancelReservation) request() Request { return c.Request }
func (c *CancelReservation) subject() string  { return "cancel reservation " + c.ID }

// Extends reports whether a command plans more occurrences of a series.
func (c *Reserve) Extends() bool { return c.After != 0 }

// NeverEnds is the latest moment that the calendar knows. It leaves room to add a length without an overflow.
const NeverEnds = reservation.Moment(1<<62 - 1)

func (c *Reserve) Validate() error {
	err := firstError(name("namespace", c.Namespace), reservationID(c.ID), c.validateStarts(), c.Request.validate())
	if err != nil || c.Extends() {
		return err
	}
	if err := firstError(name("resource", c.Resource), name("holder", c.Holder), text("reason", c.Reason),
		c.validateLength(), c.validateRule(), noPattern(c.Resource, "it cannot be reserved")); err != nil {
		return err
	}
	item := Item{Resource: c.Resource, ID: c.ID, Slots: c.Slots, Select: c.Select}
	return item.validate()
}

// reservationID checks the id of a reservation. Occurrences have ids of their own, which have a mark in them.
func reservationID(id string) error {
	if strings.Contains(id, reservation.Mark) {
		return invalid("reservation id %q has %q in it, which only the ids of occurrences have", id, reservation.Mark)
	}
	return name("reservation id", id)
}

// validateLength checks how long a reservation is, and that its end can be counted.
func (c *Reserve) validateLength() error {
	if c.Length < leasehold.MinReservation || c.Length > leasehold.MaxReservation {
		return invalid("length %v is out of range: %v to %v (30 days) are allowed", c.Length, leasehold.MinReservation,
			leasehold.MaxReservation)
	}
	if c.From < 0 || c.From > NeverEnds {
		return invalid("from is out of range")
	}
	return nil
}

// validateStarts checks the occurrences of a series. Whether they follow the rule cannot be known here.
func (c *Reserve) validateStarts() error {
	switch {
	case c.Rule == nil && !c.Extends() && (len(c.Starts) > 0 || c.To != 0):
		return invalid("starts are those of a rule: say which")
	case c.Extends() && (c.Rule != nil || c.Resource != "" || c.Holder != "" || c.Reason != "" || c.Slots != 0 ||
		c.Select != nil || c.From != 0 || c.Length != 0):
		return invalid("a series is extended by its starts alone")
	case len(c.Starts) > leasehold.MaxStarts:
		return invalid("there are %d starts: at most %d are planned at once", len(c.Starts), leasehold.MaxStarts)
	case (c.Rule != nil || c.Extends()) && (c.To <= c.After || c.After < 0 || c.To > NeverEnds):
		return invalid("a series is planned up to a moment that is later than before")
	case !slices.IsSorted(c.Starts) ||
		len(c.Starts) > 0 && (c.Starts[0] < c.After || c.Starts[len(c.Starts)-1] >= c.To):
		return invalid("starts are not in order, or not within what is planned")
	}
	return nil
}

// validateRule checks a rule as far as that takes no calendar.
func (c *Reserve) validateRule() error {
	r := c.Rule
	switch {
	case r == nil:
		return nil
	case c.From != 0:
		return invalid("a rule says when it begins: leave from out")
	case r.Days == 0 || r.Days > leasehold.AllDays:
		return invalid("a rule needs at least one day of the week")
	case r.At < 0 || r.At >= 24*time.Hour || r.At%time.Second != 0:
		return invalid("the time of a rule is out of range: 00:00:00 to 23:59:59 are allowed")
	case r.Length != c.Length:
		return invalid("the rule is %v long, and the reservation %v", r.Length, c.Length)
	case !r.Until.IsZero() && (r.Until.UnixNano() <= 0 || reservation.Moment(r.Until.UnixNano()) > NeverEnds):
		return invalid("until is out of range")
	}
	return name("zone", r.Zone)
}

func (c *CancelReservation) Validate() error {
	return firstError(name("namespace", c.Namespace), name("reservation id", c.ID), text("by", c.By),
		text("reason", c.Reason), c.Request.validate())
}

// validateClaim checks an acquire that claims a reservation, which says what of the resource it gets.
func (c *Acquire) validateClaim() error {
	switch {
	case c.Reservation == "":
		return nil
	case len(c.Also) > 0:
		return invalid("a reservation is of one resource: leave the others out")
	case c.Slots != 0 || c.Capacity != 0 || c.Select != nil:
		return invalid("the reservation says how many slots it is for, and which: leave slots, capacity, where, " +
			"spread and units out")
	case c.Task:
		return invalid("a task is claimed by its folder, and not by a reservation")
	case c.Pick == TTLUnattended:
		return invalid("a reservation says when it ends: say the ttl")
	case c.Priority != 0:
		return invalid("a reservation comes before every priority: leave that out")
	}
	return text("reservation", c.Reservation)
}

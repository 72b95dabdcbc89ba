package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Reservations: what is planned, by which rule it recurs, and what claims it.

var atStarts = choice{uint8(leasehold.WaitAtStart), uint8(leasehold.EndAtStart)}

// plannedKind is recordKind for what is reserved, or else for access.
func plannedKind(value any) uint64 {
	switch value.(type) {
	case *core.Calendar:
		return kindCalendar
	case *reservation.Reservation:
		return kindReservation
	case *reservation.Series:
		return kindSeries
	}
	return accessKind(value)
}

// reservationPiece is the value of a record about reservations, or else about access.
func (c *codec) reservationPiece(value any) {
	switch v := value.(type) {
	case *core.Calendar:
		c.date("date", &v.Date)
	case *reservation.Reservation:
		c.reserved(v)
	case *reservation.Series:
		c.series(v)
	default:
		c.accessPiece(value)
	}
}

// date is a moment of the calendar, in Unix nanoseconds; 0 for none.
func (c *codec) date(field string, v *reservation.Moment) { c.signed(field, (*int64)(v)) }

// rule says when a reservation recurs. Only doors know what its zone means.
func (c *codec) rule(v *leasehold.Rule) {
	c.text("zone", &v.Zone)
	c.unsigned8("days", (*uint8)(&v.Days))
	c.duration("at", &v.At)
	c.duration("length", &v.Length)
	c.moment("until", &v.Until)
}

// reserved is a reservation in a snapshot.
func (c *codec) reserved(v *reservation.Reservation) {
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.text("holder", &v.Holder)
	c.text("reason", &v.Reason)
	c.unsigned32("slots", &v.Slots)
	c.selection(&v.Select)
	c.date("from", &v.From)
	c.date("until", &v.Until)
	c.text("series", &v.Series)
	c.mayOwn(&v.Owner)
	c.names("units", &v.Units)
	c.flag("told", &v.Told)
	c.flag("begun", &v.Begun)
	c.date("claim by", &v.ClaimBy)
	c.text("lease", &v.Lease)
	c.date("over", &v.Over)
	c.text("why", &v.Why)
}

// series is a reservation that recurs. Its occurrences are records of their own.
func (c *codec) series(v *reservation.Series) {
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.text("holder", &v.Holder)
	c.text("reason", &v.Reason)
	c.unsigned32("slots", &v.Slots)
	c.selection(&v.Select)
	c.rule(&v.Rule)
	c.date("expanded", &v.Expanded)
	c.mayOwn(&v.Owner)
}

// mayOwn is whose something is, if it is anybody's.
func (c *codec) mayOwn(v **access.Owner) {
	if present(c, "owner", v) {
		c.owner(v)
	}
}

// claimReserved is what a claim selected, if anything, and the reservation that it claims.
func (c *codec) claimReserved(v *core.Claim) {
	if v.Terms == nil {
		c.fail("terms", "they are missing, and have the reservation")
		return
	}
	c.selection(&v.Terms.Select)
	c.someText("reservation", &v.Terms.Reservation)
}

// someText is a text without which this would be of another kind.
func (c *codec) someText(field string, v *string) {
	if c.text(field, v); *v == "" && c.fault == nil {
		c.fail(field, "it is missing, and then this is of another kind")
	}
}

// onReservation is the limits of a definition and its rules for idle leases, which may be none, and what happens when a
// reservation begins.
func (c *codec) onReservation(d *leasehold.Definition) {
	if c.beforeBackfill(d); d.OnReservation == 0 && c.fault == nil {
		c.fail("on reservation", "it is missing, and then this is of another kind")
	}
}

// backfill is a definition that lets others borrow what is kept for somebody, with all that may come before it.
func (c *codec) backfill(d *leasehold.Definition) {
	c.beforeBackfill(d)
	d.Backfill = true
}

func (c *codec) beforeBackfill(d *leasehold.Definition) {
	c.anyLimits(&d.Limits)
	c.duration("idle", &d.Idle)
	c.duration("idle release", &d.IdleRelease)
	c.oneOf("on reservation", (*uint8)(&d.OnReservation), atStarts)
}

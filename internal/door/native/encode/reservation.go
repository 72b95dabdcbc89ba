package encode

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/calendar"
)

// upcoming writes the next reservation of a resource that somebody holds.
func (b *Buffer) upcoming(u *leasehold.Upcoming) {
	b.Key("reserved")
	b.Open()
	b.Text("id", u.ID)
	b.Text("holder", u.Holder)
	b.Some("reason", u.Reason)
	b.Moment("from", u.From)
	b.Moment("until", u.Until)
	b.Close()
}

// Reservation writes a reservation; with a series, as that.
func (b *Buffer) Reservation(r *leasehold.Reservation, s *leasehold.Series) {
	b.Open()
	b.Text("namespace", r.Namespace)
	b.Text("id", r.ID)
	b.Text("resource", r.Resource)
	b.Text("holder", r.Holder)
	b.Some("reason", r.Reason)
	b.Count("slots", r.Slots)
	if r.Select != nil {
		b.Some("where", r.Select.Where)
		b.Yes("spread", r.Select.Spread)
	}
	if !r.From.IsZero() {
		b.Moment("from", r.From)
		b.Moment("until", r.Until)
		b.Text("state", r.State.String())
	}
	if !r.ClaimBy.IsZero() {
		b.Moment("claim_by", r.ClaimBy)
	}
	b.Some("lease", r.Lease)
	b.Names("units", r.Units)
	b.Some("series", r.Series)
	b.Some("why", r.Why)
	if s != nil {
		b.rule(s)
	}
	b.Close()
}

// rule writes when a reservation recurs.
func (b *Buffer) rule(s *leasehold.Series) {
	b.Key("rule")
	b.Open()
	b.Text("every", calendar.DaysText(s.Rule.Days))
	b.Text("at", calendar.ClockText(s.Rule.At))
	b.Text("zone", s.Rule.Zone)
	b.Span("length", s.Rule.Length)
	if !s.Rule.Until.IsZero() {
		b.Moment("until", s.Rule.Until)
	}
	b.Moment("planned", s.Expanded)
	b.Close()
}

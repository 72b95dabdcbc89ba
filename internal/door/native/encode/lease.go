package encode

import (
	"time"

	"github.com/leasehold/leasehold"
)

func (b *Buffer) labels(ls leasehold.Labels) {
	if len(ls) == 0 {
		return
	}
	b.Key("labels")
	b.Open()
	for _, l := range ls {
		b.name(l.Key)
		b.String(l.Value)
	}
	b.Close()
}

// A Grant is what an answer says beside the lease.
type Grant struct {
	Waited  time.Duration // 0: it was granted at once
	Also    []leasehold.Lease
	Warning string
	Counted bool // interventions are known
}

// Lease writes a lease.
func (b *Buffer) Lease(l *leasehold.Lease, g Grant) {
	b.Open()
	b.Text("namespace", l.Namespace)
	b.Text("resource", l.Resource)
	b.Text("id", l.ID)
	b.Some("foreign", l.Foreign)
	b.Text("holder", l.Holder)
	b.Number("token", uint64(l.Token))
	b.Number("floor", uint64(l.Floor))
	b.Text("state", l.State.String())
	b.Count("slots", l.Slots)
	b.Names("units", l.Units)
	b.Span("ttl", l.TTL)
	b.SomeSpan("hold_limit", l.HoldLimit)
	b.Moment("expires", l.Expires)
	if l.Expires.IsZero() {
		b.Null("remaining_ms")
	} else {
		b.Millis("remaining_ms", l.Remaining)
	}
	b.Moment("acquired", l.Acquired)
	b.Moment("available_at", l.AvailableAt)
	b.Some("session", l.Session)
	b.labels(l.Labels)
	b.Some("reason", l.Reason)
	b.Some("door", l.Door)
	if l.Note != "" {
		b.Text("note", l.Note)
		b.Moment("noted", l.Noted)
	}
	b.Number("revision", uint64(l.Revision))
	if g.Waited > 0 {
		b.Millis("waited_ms", max(g.Waited, time.Millisecond))
	}
	b.someEnding("after", l.After)
	if g.Counted && l.Session != "" {
		b.Number("interventions", l.Interventions)
	}
	b.also(g)
	b.Some("warning", g.Warning)
	if l.Reserved != nil {
		b.upcoming(l.Reserved)
	}
	b.Close()
}

// also writes what was granted at the same moment, and was waited for as long.
func (b *Buffer) also(g Grant) {
	if len(g.Also) == 0 {
		return
	}
	Array(b, "also", g.Also, func(v *leasehold.Lease) { b.Lease(v, Grant{Waited: g.Waited, Counted: g.Counted}) })
}

// Session writes a session. With seen, interventions are known, and those after that number are
// named as far as they can be.
func (b *Buffer) Session(s *leasehold.Session, warning string, seen *uint64) {
	b.Open()
	b.Text("namespace", s.Namespace)
	b.Text("id", s.ID)
	b.Span("ttl", s.TTL)
	b.Moment("expires", s.Expires)
	b.Millis("remaining_ms", s.Remaining)
	b.Moment("opened", s.Opened)
	b.Number("claims", uint64(s.Claims))
	b.labels(s.Labels)
	b.Some("warning", warning)
	if seen != nil {
		b.Number("interventions", s.Interventions)
		b.Names("intervened", newest(s, *seen))
	}
	b.Close()
}

// newest returns the ids of the interventions after a number.
func newest(s *leasehold.Session, seen uint64) []string {
	unseen := s.Interventions - min(seen, s.Interventions)
	return s.Intervened[len(s.Intervened)-int(min(unseen, uint64(len(s.Intervened)))):]
}

// Resource writes a resource, with who holds it and who waits.
func (b *Buffer) Resource(s *leasehold.Status) {
	b.Open()
	b.Text("namespace", s.Namespace)
	b.Text("resource", s.Resource)
	b.Text("state", s.State.String())
	b.Number("capacity", uint64(s.Capacity))
	b.Number("used", uint64(s.Used))
	b.units(s.Units)
	if s.Holding > len(s.Holders) {
		b.Count("holding", s.Holding)
	}
	Array(b, "holders", s.Holders, func(v *leasehold.Lease) { b.Lease(v, Grant{}) })
	b.Number("waiting", uint64(s.Waiting))
	b.queue(s.Queue)
	b.lastEnding(s.Last)
	b.Moment("available_at", s.AvailableAt)
	b.someEnding("unacknowledged", s.Unacknowledged)
	b.usual(s.Usual)
	if len(s.Overlapping) > 0 {
		Array(b, "overlapping", s.Overlapping, func(v *leasehold.Lease) { b.Lease(v, Grant{}) })
	}
	b.Close()
}

func (b *Buffer) units(units []leasehold.Unit) {
	if len(units) == 0 {
		return
	}
	Array(b, "units", units, func(unit *leasehold.Unit) {
		b.Open()
		b.Text("name", unit.Name)
		b.Some("lease", unit.Lease)
		b.Some("holder", unit.Holder)
		b.Yes("rests", unit.Rests)
		b.Close()
	})
}

func (b *Buffer) queue(waiters []leasehold.Waiter) {
	if len(waiters) == 0 {
		return
	}
	Array(b, "queue", waiters, b.Waiter)
}

// Waiter writes a place in a queue.
func (b *Buffer) Waiter(w *leasehold.Waiter) {
	b.Open()
	b.Number("position", uint64(w.Position))
	if w.Priority != 0 {
		b.Key("priority")
		b.Int(int64(w.Priority))
	}
	b.Count("slots", w.Slots)
	b.Text("id", w.ID)
	b.Some("foreign", w.Foreign)
	b.Text("holder", w.Holder)
	b.Some("session", w.Session)
	b.labels(w.Labels)
	b.Some("reason", w.Reason)
	b.Moment("since", w.Since)
	b.Moment("until", w.Until)
	b.forecast(w)
	b.Close()
}

// forecast writes when the turn of a waiter usually comes.
func (b *Buffer) forecast(w *leasehold.Waiter) {
	b.SomeSpan("forecast", w.Forecast)
	b.SomeSpan("forecast_error", w.ForecastError)
}

// lastEnding writes how the last lease ended, and null if there was none.
func (b *Buffer) lastEnding(e *leasehold.Ending) {
	if e == nil {
		b.Null("last")
		return
	}
	b.someEnding("last", e)
}

func (b *Buffer) someEnding(key string, e *leasehold.Ending) {
	if e == nil {
		return
	}
	b.Key(key)
	b.Open()
	b.Text("id", e.ID)
	b.Some("foreign", e.Foreign)
	b.Text("holder", e.Holder)
	b.Number("token", uint64(e.Token))
	b.Text("how", e.How.String())
	b.Some("by", e.By)
	b.Some("reason", e.Reason)
	b.Moment("at", e.At)
	b.Close()
}

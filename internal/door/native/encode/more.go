package encode

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
)

// Alarm writes an alarm.
func (b *Buffer) Alarm(a *leasehold.Alarm) {
	b.Open()
	b.Text("namespace", a.Namespace)
	b.Text("kind", a.Kind.String())
	b.Some("resource", a.Resource)
	b.Some("id", a.ID)
	b.Some("holder", a.Holder)
	if a.Token != 0 {
		b.Number("token", uint64(a.Token))
	}
	b.Some("session", a.Session)
	if a.Order != 0 {
		b.Number("occurrence", a.Order)
	}
	b.Moment("since", a.Since)
	b.Moment("last", a.Last)
	b.Number("count", uint64(a.Count))
	b.Text("text", a.Text)
	b.Close()
}

// usual writes what was learned, if that is anything.
func (b *Buffer) usual(u *leasehold.Usual) {
	if u == nil {
		return
	}
	b.Key("usual")
	b.Open()
	b.Number("holds", uint64(u.Holds))
	b.SomeSpan("hold_p50", u.HoldP50)
	b.SomeSpan("hold_p95", u.HoldP95)
	b.Number("unclean", uint64(u.Unclean))
	b.Number("waits", uint64(u.Waits))
	b.SomeSpan("wait_p50", u.WaitP50)
	b.SomeSpan("wait_p95", u.WaitP95)
	b.Count("queue", u.Queue)
	b.Close()
}

// Advice writes what TTL a resource should have.
func (b *Buffer) Advice(a *leasehold.Advice) {
	b.Open()
	b.Text("namespace", a.Namespace)
	b.Text("resource", a.Resource)
	b.Span("ttl", a.TTL)
	b.Flag("learned", a.Learned)
	b.SomeSpan("least", a.Least)
	b.SomeSpan("cheapest", a.Cheapest)
	b.SomeSpan("most", a.Most)
	b.Number("renewals", uint64(a.Renewals))
	b.Span("interval", a.Interval)
	b.Span("take_over", a.TakeOver)
	b.SomeSpan("grace", a.Grace)
	b.usual(a.Usual)
	b.Names("reasons", a.Reasons)
	b.Close()
}

// Kinds writes what was learned of kinds of leases on a resource.
func (b *Buffer) Kinds(namespace, path string, list []leasehold.LearnedKind) {
	b.Open()
	b.Text("namespace", namespace)
	b.Text("resource", path)
	b.Key("items")
	b.OpenList()
	for _, k := range list {
		b.Next()
		b.Open()
		b.Text("name", k.Name)
		b.Span("ttl", k.TTL)
		b.Span("unattended", k.Unattended)
		b.usual(k.Usual)
		b.Close()
	}
	b.CloseList()
	b.Close()
}

// Definition writes the definition of a resource or a prefix.
func (b *Buffer) Definition(namespace string, d *leasehold.Definition) {
	b.Open()
	b.Text("namespace", namespace)
	b.Text("path", d.Path)
	b.Count("capacity", d.Capacity)
	b.Names("units", d.Units)
	b.SomeSpan("default_ttl", d.DefaultTTL)
	b.SomeSpan("largest_ttl", d.LargestTTL)
	b.SomeSpan("hold_limit", d.HoldLimit)
	b.SomeSpan("grace", d.Grace)
	b.SomeSpan("expected", d.Expected)
	b.Text("unclean", d.Unclean.String())
	b.limits(d.Limits)
	b.SomeSpan("idle", d.Idle)
	b.SomeSpan("idle_release", d.IdleRelease)
	if d.OnReservation != leasehold.WaitAtStart {
		b.Text("on_reservation", d.OnReservation.String())
	}
	b.Yes("backfill", d.Backfill)
	b.Number("revision", uint64(d.Revision))
	b.Close()
}

// Operation writes what the journal has of one request.
func (b *Buffer) Operation(l *audit.Line) {
	b.openLine(l)
	b.Moment("at", l.At)
	b.Text("namespace", l.Namespace)
	b.Text("verb", l.Verb)
	b.Text("outcome", l.Outcome)
	b.Some("actor", l.Actor)
	b.Some("address", l.Address)
	b.Some("door", l.Door)
	b.Some("resource", l.Resource)
	b.Some("id", l.ID)
	b.Some("foreign", l.Foreign)
	b.Some("holder", l.Holder)
	if l.Token != 0 {
		b.Number("token", uint64(l.Token))
	}
	b.Some("session", l.Session)
	if l.How != 0 {
		b.Text("how", l.How.String())
	}
	b.Some("by", l.By)
	b.Some("reason", l.Reason)
	b.Close()
}

// Hold writes what the journal has of one lease.
func (b *Buffer) Hold(l *audit.Line) {
	b.openLine(l)
	b.Text("namespace", l.Namespace)
	b.Text("resource", l.Resource)
	b.Text("id", l.ID)
	b.Some("foreign", l.Foreign)
	b.Text("holder", l.Holder)
	b.Number("token", uint64(l.Token))
	b.Some("session", l.Session)
	b.Moment("since", l.Since)
	b.Moment("until", l.Until)
	b.Millis("waited_ms", l.Waited)
	if l.Busy != 0 || l.Idle != 0 {
		b.Millis("busy_ms", l.Busy)
		b.Millis("idle_ms", l.Idle)
	}
	b.Count("units", l.Share.Units)
	b.labels(l.Share.Labels)
	b.Text("how", l.How.String())
	b.Some("by", l.By)
	b.Some("reason", l.Reason)
	b.Close()
}

// openLine begins a line with its place in the log, if it has one.
func (b *Buffer) openLine(l *audit.Line) {
	b.Open()
	if l.Index != 0 {
		b.Number("index", l.Index)
	}
	if l.N != 0 {
		b.Number("n", uint64(l.N))
	}
}

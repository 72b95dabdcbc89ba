package native

import (
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Answers are written by hand: the same JSON by encoding/json costs several times
// as much (BenchmarkEncodeLease), on the path that every renewal takes.

func (b *jsonBuffer) labels(ls leasehold.Labels) {
	if len(ls) == 0 {
		return
	}
	b.key("labels")
	b.open()
	for _, l := range ls {
		b.comma()
		*b = append(quote(*b, l.Key), ':')
		*b = quote(*b, l.Value)
	}
	b.close()
}

// A grant is what an answer says beside the lease.
type grant struct {
	waited  time.Duration // 0: it was granted at once
	also    []leasehold.Lease
	warning string
	counted bool // interventions are known
}

func (b *jsonBuffer) lease(l *leasehold.Lease, g grant) {
	b.open()
	b.text("namespace", l.Namespace)
	b.text("resource", l.Resource)
	b.text("id", l.ID)
	b.some("foreign", l.Foreign)
	b.text("holder", l.Holder)
	b.number("token", uint64(l.Token))
	b.number("floor", uint64(l.Floor))
	b.text("state", l.State.String())
	b.count("slots", l.Slots)
	b.names("units", l.Units)
	b.span("ttl", l.TTL)
	b.someSpan("hold_limit", l.HoldLimit)
	b.moment("expires", l.Expires)
	if l.Expires.IsZero() {
		b.null("remaining_ms")
	} else {
		b.millis("remaining_ms", l.Remaining)
	}
	b.moment("acquired", l.Acquired)
	b.moment("available_at", l.AvailableAt)
	b.some("session", l.Session)
	b.labels(l.Labels)
	b.some("reason", l.Reason)
	b.some("door", l.Door)
	if l.Note != "" {
		b.text("note", l.Note)
		b.moment("noted", l.Noted)
	}
	b.number("revision", uint64(l.Revision))
	if g.waited > 0 {
		b.millis("waited_ms", max(g.waited, time.Millisecond))
	}
	b.someEnding("after", l.After)
	if g.counted && l.Session != "" {
		b.number("interventions", l.Interventions)
	}
	b.also(g)
	b.some("warning", g.warning)
	b.close()
}

// also writes what was granted at the same moment, and was waited for as long.
func (b *jsonBuffer) also(g grant) {
	if len(g.also) == 0 {
		return
	}
	array(b, "also", g.also, func(v *leasehold.Lease) { b.lease(v, grant{waited: g.waited, counted: g.counted}) })
}

// session writes a session. With seen, interventions are known, and those after that number are
// named as far as they can be.
func (b *jsonBuffer) session(s *leasehold.Session, warning string, seen *uint64) {
	b.open()
	b.text("namespace", s.Namespace)
	b.text("id", s.ID)
	b.span("ttl", s.TTL)
	b.moment("expires", s.Expires)
	b.millis("remaining_ms", s.Remaining)
	b.moment("opened", s.Opened)
	b.number("claims", uint64(s.Claims))
	b.labels(s.Labels)
	b.some("warning", warning)
	if seen != nil {
		b.number("interventions", s.Interventions)
		b.names("intervened", newest(s, *seen))
	}
	b.close()
}

// newest returns the ids of the interventions after a number.
func newest(s *leasehold.Session, seen uint64) []string {
	unseen := s.Interventions - min(seen, s.Interventions)
	return s.Intervened[len(s.Intervened)-int(min(unseen, uint64(len(s.Intervened)))):]
}

func (b *jsonBuffer) resource(s *leasehold.Status) {
	b.open()
	b.text("namespace", s.Namespace)
	b.text("resource", s.Resource)
	b.text("state", s.State.String())
	b.number("capacity", uint64(s.Capacity))
	b.number("used", uint64(s.Used))
	b.units(s.Units)
	if s.Holding > len(s.Holders) {
		b.count("holding", s.Holding)
	}
	array(b, "holders", s.Holders, func(v *leasehold.Lease) { b.lease(v, grant{}) })
	b.number("waiting", uint64(s.Waiting))
	b.queue(s.Queue)
	b.lastEnding(s.Last)
	b.moment("available_at", s.AvailableAt)
	b.someEnding("unacknowledged", s.Unacknowledged)
	b.usual(s.Usual)
	b.close()
}

func (b *jsonBuffer) units(units []leasehold.Unit) {
	if len(units) == 0 {
		return
	}
	array(b, "units", units, func(unit *leasehold.Unit) {
		b.open()
		b.text("name", unit.Name)
		b.some("lease", unit.Lease)
		b.some("holder", unit.Holder)
		b.yes("rests", unit.Rests)
		b.close()
	})
}

func (b *jsonBuffer) queue(waiters []leasehold.Waiter) {
	if len(waiters) == 0 {
		return
	}
	array(b, "queue", waiters, b.waiter)
}

func (b *jsonBuffer) waiter(w *leasehold.Waiter) {
	b.open()
	b.number("position", uint64(w.Position))
	if w.Priority != 0 {
		b.key("priority")
		*b = strconv.AppendInt(*b, int64(w.Priority), 10)
	}
	b.count("slots", w.Slots)
	b.text("id", w.ID)
	b.some("foreign", w.Foreign)
	b.text("holder", w.Holder)
	b.some("session", w.Session)
	b.labels(w.Labels)
	b.some("reason", w.Reason)
	b.moment("since", w.Since)
	b.moment("until", w.Until)
	b.someSpan("forecast", w.Forecast)
	b.close()
}

// lastEnding writes how the last lease ended, and null if there was none.
func (b *jsonBuffer) lastEnding(e *leasehold.Ending) {
	if e == nil {
		b.null("last")
		return
	}
	b.someEnding("last", e)
}

func (b *jsonBuffer) someEnding(key string, e *leasehold.Ending) {
	if e == nil {
		return
	}
	b.key(key)
	b.open()
	b.text("id", e.ID)
	b.some("foreign", e.Foreign)
	b.text("holder", e.Holder)
	b.number("token", uint64(e.Token))
	b.text("how", e.How.String())
	b.some("by", e.By)
	b.some("reason", e.Reason)
	b.moment("at", e.At)
	b.close()
}

// event writes an event, with the values of its record that are asked for.
func (b *jsonBuffer) event(e *leasehold.Event, with values) {
	b.open()
	b.text("namespace", e.Namespace)
	b.number("revision", uint64(e.Revision))
	b.number("n", uint64(e.N))
	b.text("kind", e.Kind.String())
	if e.How != 0 {
		b.text("how", e.How.String())
	}
	b.moment("at", e.At)
	if !e.Until.IsZero() {
		b.moment("until", e.Until)
	}
	b.some("resource", e.Resource)
	b.some("id", e.ID)
	b.some("foreign", e.Foreign)
	b.some("holder", e.Holder)
	if e.Token != 0 {
		b.number("token", uint64(e.Token))
	}
	b.some("session", e.Session)
	b.some("by", e.By)
	b.some("reason", e.Reason)
	if e.Alarm != 0 {
		b.text("alarm", e.Alarm.String())
	}
	if e.Record != nil {
		b.number("version", e.Record.Version)
		if with.now {
			b.content("value", "large", e.Record.Value, e.Record.Large)
		}
	}
	if e.Previous != nil && with.before {
		b.content("previous", "previous_large", e.Previous.Value, e.Previous.Large)
	}
	b.close()
}

// content writes a value, or the name of a large one.
func (b *jsonBuffer) content(key, largeKey, value string, large *leasehold.Large) {
	if large == nil {
		b.bytes(key, value)
		return
	}
	b.key(largeKey)
	b.open()
	b.text("sha256", large.SHA256.String())
	b.number("size", uint64(large.Size))
	b.close()
}

func (b *jsonBuffer) version(v *leasehold.Version) {
	b.open()
	b.number("revision", uint64(v.Revision))
	b.number("create_revision", uint64(v.Create))
	b.number("version", v.Version)
	if v.Large != nil {
		b.number("size", uint64(v.Large.Size))
		b.text("sha256", v.Large.SHA256.String())
	} else {
		b.number("size", uint64(len(v.Value)))
	}
	if !v.Written.IsZero() {
		b.moment("written", v.Written)
	}
	b.some("holder", v.Holder)
	b.some("session", v.Session)
	if v.Token != 0 {
		b.number("token", uint64(v.Token))
	}
	b.yes("current", v.Current)
	b.yes("deleted", v.Deleted)
	b.close()
}

func (b *jsonBuffer) record(namespace string, r *leasehold.Record, value bool) {
	b.open()
	b.text("namespace", namespace)
	b.text("path", r.Path)
	if value || r.Large != nil {
		b.content("value", "large", r.Value, r.Large)
	}
	if value && r.Large == nil && v1.IsText(r.Value) {
		b.text("text", r.Value)
	}
	b.number("create_revision", uint64(r.Create))
	b.number("mod_revision", uint64(r.Mod))
	b.number("version", r.Version)
	b.some("session", r.Session)
	if r.Token != 0 {
		b.number("token", uint64(r.Token))
	}
	b.close()
}

func (b *jsonBuffer) items(namespace string, records []*leasehold.Record, values bool) {
	array(b, "items", records, func(r **leasehold.Record) { b.record(namespace, *r, values) })
}

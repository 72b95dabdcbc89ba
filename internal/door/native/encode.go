package native

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Answers are written by hand: the same JSON by encoding/json costs several times
// as much (BenchmarkEncodeLease), on the path that every renewal takes.

// A paper is JSON being written. Where a comma belongs, the last byte tells.
type paper []byte

func (p *paper) open()  { *p = append(*p, '{') }
func (p *paper) close() { *p = append(*p, '}') }

func (p *paper) comma() {
	if last := (*p)[len(*p)-1]; last != '{' && last != '[' {
		*p = append(*p, ',')
	}
}

// key begins a field. Keys are our own words and need no escapes.
func (p *paper) key(key string) {
	p.comma()
	*p = append(*p, '"')
	*p = append(*p, key...)
	*p = append(*p, '"', ':')
}

func (p *paper) text(key, value string) {
	p.key(key)
	*p = quote(*p, value)
}

// some writes a text unless it is empty.
func (p *paper) some(key, value string) {
	if value != "" {
		p.text(key, value)
	}
}

func (p *paper) number(key string, value uint64) {
	p.key(key)
	*p = strconv.AppendUint(*p, value, 10)
}

func (p *paper) null(key string) {
	p.key(key)
	*p = append(*p, "null"...)
}

// moment writes a time, and null for none.
func (p *paper) moment(key string, t time.Time) {
	if t.IsZero() {
		p.null(key)
		return
	}
	p.key(key)
	*p = append(*p, '"')
	*p = appendMoment(*p, t)
	*p = append(*p, '"')
}

// appendMoment writes RFC 3339 with milliseconds. Without a fraction time has a
// quick way to do it, so the fraction is put in afterwards.
func appendMoment(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// span writes a duration as people do, and null for none.
func (p *paper) span(key string, d time.Duration) {
	if d == 0 {
		p.null(key)
		return
	}
	p.key(key)
	*p = append(*p, '"')
	*p = appendSpan(*p, d)
	*p = append(*p, '"')
}

// appendSpan writes what v1.Duration does.
func appendSpan(b []byte, d time.Duration) []byte {
	if d%time.Second == 0 && d < time.Minute {
		return append(strconv.AppendInt(b, int64(d/time.Second), 10), 's')
	}
	return append(b, v1.Duration(d).String()...)
}

// someSpan writes a duration unless it is zero.
func (p *paper) someSpan(key string, d time.Duration) {
	if d != 0 {
		p.span(key, d)
	}
}

// count writes a number unless it is zero.
func (p *paper) count(key string, n int) {
	if n != 0 {
		p.number(key, uint64(n))
	}
}

// names writes a list of texts unless it is empty.
func (p *paper) names(key string, list []string) {
	if len(list) == 0 {
		return
	}
	p.key(key)
	*p = append(*p, '[')
	for _, name := range list {
		p.comma()
		*p = quote(*p, name)
	}
	*p = append(*p, ']')
}

// array writes a list.
func array[T any](p *paper, key string, list []T, each func(*T)) {
	p.key(key)
	*p = append(*p, '[')
	for i := range list {
		p.comma()
		each(&list[i])
	}
	*p = append(*p, ']')
}

// millis writes what is left in whole milliseconds, never more than there is.
func (p *paper) millis(key string, d time.Duration) {
	p.key(key)
	*p = strconv.AppendInt(*p, d.Milliseconds(), 10)
}

func (p *paper) labels(ls leasehold.Labels) {
	if len(ls) == 0 {
		return
	}
	p.key("labels")
	p.open()
	for _, l := range ls {
		p.comma()
		*p = append(quote(*p, l.Key), ':')
		*p = quote(*p, l.Value)
	}
	p.close()
}

// A grant is what an answer says beside the lease.
type grant struct {
	waited  time.Duration // 0: it was granted at once
	also    []leasehold.Lease
	warning string
	counted bool // interventions are known
}

func (p *paper) lease(l *leasehold.Lease, g grant) {
	p.open()
	p.text("namespace", l.Namespace)
	p.text("resource", l.Resource)
	p.text("id", l.ID)
	p.text("holder", l.Holder)
	p.number("token", uint64(l.Token))
	p.number("floor", uint64(l.Floor))
	p.text("state", l.State.String())
	p.count("slots", l.Slots)
	p.names("units", l.Units)
	p.span("ttl", l.TTL)
	p.someSpan("hold_limit", l.HoldLimit)
	p.moment("expires", l.Expires)
	if l.Expires.IsZero() {
		p.null("remaining_ms")
	} else {
		p.millis("remaining_ms", l.Remaining)
	}
	p.moment("acquired", l.Acquired)
	p.moment("available_at", l.AvailableAt)
	p.some("session", l.Session)
	p.labels(l.Labels)
	p.some("reason", l.Reason)
	p.number("revision", uint64(l.Revision))
	if g.waited > 0 {
		p.millis("waited_ms", max(g.waited, time.Millisecond))
	}
	p.someEnding("after", l.After)
	if g.counted && l.Session != "" {
		p.number("interventions", l.Interventions)
	}
	p.also(g)
	p.some("warning", g.warning)
	p.close()
}

// also writes what was granted at the same moment, and was waited for as long.
func (p *paper) also(g grant) {
	if len(g.also) == 0 {
		return
	}
	array(p, "also", g.also, func(v *leasehold.Lease) { p.lease(v, grant{waited: g.waited, counted: g.counted}) })
}

// session writes a session. With seen, interventions are known, and those after that number are
// named as far as they can be.
func (p *paper) session(s *leasehold.Session, warning string, seen *uint64) {
	p.open()
	p.text("namespace", s.Namespace)
	p.text("id", s.ID)
	p.span("ttl", s.TTL)
	p.moment("expires", s.Expires)
	p.millis("remaining_ms", s.Remaining)
	p.moment("opened", s.Opened)
	p.number("claims", uint64(s.Claims))
	p.labels(s.Labels)
	p.some("warning", warning)
	if seen != nil {
		p.number("interventions", s.Interventions)
		p.names("intervened", newest(s, *seen))
	}
	p.close()
}

// newest returns the ids of the interventions after a number.
func newest(s *leasehold.Session, seen uint64) []string {
	unseen := s.Interventions - min(seen, s.Interventions)
	return s.Intervened[len(s.Intervened)-int(min(unseen, uint64(len(s.Intervened)))):]
}

func (p *paper) resource(s *leasehold.Status) {
	p.open()
	p.text("namespace", s.Namespace)
	p.text("resource", s.Resource)
	p.text("state", s.State.String())
	p.number("capacity", uint64(s.Capacity))
	p.number("used", uint64(s.Used))
	p.units(s.Units)
	if s.Holding > len(s.Holders) {
		p.count("holding", s.Holding)
	}
	array(p, "holders", s.Holders, func(v *leasehold.Lease) { p.lease(v, grant{}) })
	p.number("waiting", uint64(s.Waiting))
	p.queue(s.Queue)
	p.lastEnding(s.Last)
	p.moment("available_at", s.AvailableAt)
	p.someEnding("unacknowledged", s.Unacknowledged)
	p.usual(s.Usual)
	p.close()
}

func (p *paper) units(units []leasehold.Unit) {
	if len(units) == 0 {
		return
	}
	array(p, "units", units, func(unit *leasehold.Unit) {
		p.open()
		p.text("name", unit.Name)
		p.some("lease", unit.Lease)
		p.some("holder", unit.Holder)
		p.yes("rests", unit.Rests)
		p.close()
	})
}

func (p *paper) queue(waiters []leasehold.Waiter) {
	if len(waiters) == 0 {
		return
	}
	array(p, "queue", waiters, p.waiter)
}

func (p *paper) waiter(w *leasehold.Waiter) {
	p.open()
	p.number("position", uint64(w.Position))
	if w.Priority != 0 {
		p.key("priority")
		*p = strconv.AppendInt(*p, int64(w.Priority), 10)
	}
	p.count("slots", w.Slots)
	p.text("id", w.ID)
	p.text("holder", w.Holder)
	p.some("session", w.Session)
	p.labels(w.Labels)
	p.some("reason", w.Reason)
	p.moment("since", w.Since)
	p.moment("until", w.Until)
	p.someSpan("forecast", w.Forecast)
	p.close()
}

// lastEnding writes how the last lease ended, and null if there was none.
func (p *paper) lastEnding(e *leasehold.Ending) {
	if e == nil {
		p.null("last")
		return
	}
	p.someEnding("last", e)
}

func (p *paper) someEnding(key string, e *leasehold.Ending) {
	if e == nil {
		return
	}
	p.key(key)
	p.open()
	p.text("id", e.ID)
	p.text("holder", e.Holder)
	p.number("token", uint64(e.Token))
	p.text("how", e.How.String())
	p.some("by", e.By)
	p.some("reason", e.Reason)
	p.moment("at", e.At)
	p.close()
}

// event writes an event, with the values of its record that are asked for.
func (p *paper) event(e *leasehold.Event, with values) {
	p.open()
	p.text("namespace", e.Namespace)
	p.number("revision", uint64(e.Revision))
	p.number("n", uint64(e.N))
	p.text("kind", e.Kind.String())
	if e.How != 0 {
		p.text("how", e.How.String())
	}
	p.moment("at", e.At)
	if !e.Until.IsZero() {
		p.moment("until", e.Until)
	}
	p.some("resource", e.Resource)
	p.some("id", e.ID)
	p.some("holder", e.Holder)
	if e.Token != 0 {
		p.number("token", uint64(e.Token))
	}
	p.some("session", e.Session)
	p.some("by", e.By)
	p.some("reason", e.Reason)
	if e.Alarm != 0 {
		p.text("alarm", e.Alarm.String())
	}
	if e.Record != nil {
		p.number("version", e.Record.Version)
		if with.now {
			p.content("value", "large", e.Record.Value, e.Record.Large)
		}
	}
	if e.Previous != nil && with.before {
		p.content("previous", "previous_large", e.Previous.Value, e.Previous.Large)
	}
	p.close()
}

// content writes a value, or the name of a large one.
func (p *paper) content(key, largeKey, value string, large *leasehold.Large) {
	if large == nil {
		p.bytes(key, value)
		return
	}
	p.key(largeKey)
	p.open()
	p.text("sha256", large.SHA256.String())
	p.number("size", uint64(large.Size))
	p.close()
}

func (p *paper) version(v *leasehold.Version) {
	p.open()
	p.number("revision", uint64(v.Revision))
	p.number("create_revision", uint64(v.Create))
	p.number("version", v.Version)
	if v.Large != nil {
		p.number("size", uint64(v.Large.Size))
		p.text("sha256", v.Large.SHA256.String())
	} else {
		p.number("size", uint64(len(v.Value)))
	}
	if !v.Written.IsZero() {
		p.moment("written", v.Written)
	}
	p.some("holder", v.Holder)
	p.some("session", v.Session)
	if v.Token != 0 {
		p.number("token", uint64(v.Token))
	}
	p.yes("current", v.Current)
	p.yes("deleted", v.Deleted)
	p.close()
}

// bytes writes what need not be text, in base64.
func (p *paper) bytes(key, value string) {
	p.key(key)
	*p = append(*p, '"')
	*p = base64.StdEncoding.AppendEncode(*p, []byte(value))
	*p = append(*p, '"')
}

func (p *paper) yes(key string, is bool) {
	if is {
		p.key(key)
		*p = append(*p, "true"...)
	}
}

func (p *paper) record(namespace string, r *leasehold.Record, value bool) {
	p.open()
	p.text("namespace", namespace)
	p.text("path", r.Path)
	if value || r.Large != nil {
		p.content("value", "large", r.Value, r.Large)
	}
	p.number("create_revision", uint64(r.Create))
	p.number("mod_revision", uint64(r.Mod))
	p.number("version", r.Version)
	p.some("session", r.Session)
	if r.Token != 0 {
		p.number("token", uint64(r.Token))
	}
	p.close()
}

func (p *paper) items(namespace string, records []*leasehold.Record, values bool) {
	array(p, "items", records, func(r **leasehold.Record) { p.record(namespace, *r, values) })
}

// quote writes a JSON string. Names that came in through another door may hold
// any bytes: those that are not UTF-8 become U+FFFD.
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = escaped(append(b, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(append(b, s[start:i]...), "\uFFFD"...)
			start = i + 1
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

func escaped(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	if c == '"' || c == '\\' {
		return append(b, '\\', c)
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

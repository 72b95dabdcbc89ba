// Package encode writes what the native door answers, in either of its forms: as JSON, or as RESP, which has the same
// fields. It is written by hand: the same JSON by encoding/json costs several times as much (BenchmarkEncodeLease), on
// the path that every renewal takes.
package encode

import (
	"encoding/base64"
	"strconv"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Form is how an answer is written.
type Form uint8

// The forms. RESP2 has no maps, no booleans and no null: it gets flat lists of keys and values, 1 and 0, and the bulk
// string that there is none of.
const (
	JSON Form = iota
	RESP2
	RESP3
)

// A Buffer is an answer being written. The zero Buffer writes JSON.
type Buffer struct {
	Bytes []byte

	form Form
	open []opened // what is not closed yet, in RESP: its count is put in front of it at the end
}

// An opened map or list of RESP.
type opened struct {
	at   int // where its count belongs
	n    int // how many keys, or elements, it has
	list bool
}

// New returns a buffer that appends to b.
func New(b []byte, form Form) Buffer { return Buffer{Bytes: b, form: form} }

// Reset makes the buffer append to b, in a form.
func (b *Buffer) Reset(to []byte, form Form) { b.Bytes, b.form, b.open = to, form, b.open[:0] }

// RESP reports whether the buffer writes RESP.
func (b *Buffer) RESP() bool { return b.form != JSON }

// Form returns what the buffer writes.
func (b *Buffer) Form() Form { return b.form }

// Open begins a map.
func (b *Buffer) Open() { b.begin('{', false) }

// Close ends a map.
func (b *Buffer) Close() { b.end('}') }

// OpenList begins a list. Each of its elements is announced by Next.
func (b *Buffer) OpenList() { b.begin('[', true) }

// CloseList ends a list.
func (b *Buffer) CloseList() { b.end(']') }

// Next announces an element of a list.
func (b *Buffer) Next() {
	if b.form == JSON {
		b.comma()
		return
	}
	b.open[len(b.open)-1].n++
}

func (b *Buffer) begin(json byte, list bool) {
	if b.form == JSON {
		b.Bytes = append(b.Bytes, json)
		return
	}
	b.open = append(b.open, opened{at: len(b.Bytes), list: list})
	b.Bytes = append(b.Bytes, "%00\r\n"...) // room for the usual count
}

func (b *Buffer) end(json byte) {
	if b.form == JSON {
		b.Bytes = append(b.Bytes, json)
		return
	}
	o := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	kind := byte('%')
	switch {
	case o.list:
		kind = '*'
	case b.form == RESP2:
		kind, o.n = '*', 2*o.n
	}
	b.head(o.at, kind, o.n)
}

// head puts a count where room for one of two digits was left. What follows it moves if it has another width.
func (b *Buffer) head(at int, kind byte, n int) {
	var digits [20]byte
	count := strconv.AppendUint(digits[:0], uint64(n), 10)
	const room = 2
	body := at + 1 + room // the end of the line, and what follows
	switch grow := len(count) - room; {
	case grow > 0:
		b.Bytes = append(b.Bytes, digits[:grow]...)
		copy(b.Bytes[body+grow:], b.Bytes[body:])
	case grow < 0:
		copy(b.Bytes[body+grow:], b.Bytes[body:])
		b.Bytes = b.Bytes[:len(b.Bytes)+grow]
	}
	b.Bytes[at] = kind
	copy(b.Bytes[at+1:], count)
}

// comma separates what JSON separates: the last byte says whether one is due.
func (b *Buffer) comma() {
	if last := b.Bytes[len(b.Bytes)-1]; last != '{' && last != '[' {
		b.Bytes = append(b.Bytes, ',')
	}
}

// Key begins a field. Keys are our own words and need no escapes.
func (b *Buffer) Key(key string) {
	if b.form != JSON {
		b.open[len(b.open)-1].n++
		b.bulk(key)
		return
	}
	b.comma()
	b.Bytes = append(b.Bytes, '"')
	b.Bytes = append(b.Bytes, key...)
	b.Bytes = append(b.Bytes, '"', ':')
}

// bulk writes a bulk string.
func (b *Buffer) bulk(s string) {
	b.Bytes = strconv.AppendUint(append(b.Bytes, '$'), uint64(len(s)), 10)
	b.Bytes = append(b.Bytes, '\r', '\n')
	b.Bytes = append(b.Bytes, s...)
	b.Bytes = append(b.Bytes, '\r', '\n')
}

// String writes a text without a key: an element of a list.
func (b *Buffer) String(s string) {
	if b.form != JSON {
		b.bulk(s)
		return
	}
	b.Bytes = quote(b.Bytes, s)
}

// Int writes a number without a key.
func (b *Buffer) Int(n int64) {
	if b.form == JSON {
		b.Bytes = strconv.AppendInt(b.Bytes, n, 10)
		return
	}
	b.Bytes = strconv.AppendInt(append(b.Bytes, ':'), n, 10)
	b.Bytes = append(b.Bytes, '\r', '\n')
}

// Uint writes a number without a key. One that RESP has no room for, since its integers have a sign, is a text there.
func (b *Buffer) Uint(n uint64) {
	switch {
	case b.form == JSON:
		b.Bytes = strconv.AppendUint(b.Bytes, n, 10)
	case n > 1<<63-1:
		b.bulk(strconv.FormatUint(n, 10))
	default:
		b.Int(int64(n))
	}
}

// Bool writes yes or no without a key.
func (b *Buffer) Bool(yes bool) {
	switch {
	case b.form == JSON:
		b.Bytes = strconv.AppendBool(b.Bytes, yes)
	case b.form == RESP3 && yes:
		b.Bytes = append(b.Bytes, "#t\r\n"...)
	case b.form == RESP3:
		b.Bytes = append(b.Bytes, "#f\r\n"...)
	case yes:
		b.Int(1)
	default:
		b.Int(0)
	}
}

// None writes that there is nothing, without a key.
func (b *Buffer) None() {
	switch b.form {
	case JSON:
		b.Bytes = append(b.Bytes, "null"...)
	case RESP2:
		b.Bytes = append(b.Bytes, "$-1\r\n"...)
	case RESP3:
		b.Bytes = append(b.Bytes, "_\r\n"...)
	}
}

// Text writes a text.
func (b *Buffer) Text(key, value string) {
	b.Key(key)
	b.String(value)
}

// Some writes a text unless it is empty.
func (b *Buffer) Some(key, value string) {
	if value != "" {
		b.Text(key, value)
	}
}

// Number writes a number.
func (b *Buffer) Number(key string, value uint64) {
	b.Key(key)
	b.Uint(value)
}

// Count writes a number unless it is zero.
func (b *Buffer) Count(key string, n int) {
	if n != 0 {
		b.Number(key, uint64(n))
	}
}

// Flag writes yes or no.
func (b *Buffer) Flag(key string, yes bool) {
	b.Key(key)
	b.Bool(yes)
}

// Yes writes a field that is either true or left out.
func (b *Buffer) Yes(key string, yes bool) {
	if yes {
		b.Flag(key, true)
	}
}

// Null writes a field that has no value.
func (b *Buffer) Null(key string) {
	b.Key(key)
	b.None()
}

// Moment writes a time, and null for none.
func (b *Buffer) Moment(key string, t time.Time) {
	if t.IsZero() {
		b.Null(key)
		return
	}
	b.Key(key)
	var room [40]byte
	b.plain(appendMoment(room[:0], t))
}

// plain writes a text that needs no escapes.
func (b *Buffer) plain(s []byte) {
	if b.form != JSON {
		b.Bytes = strconv.AppendUint(append(b.Bytes, '$'), uint64(len(s)), 10)
		b.Bytes = append(b.Bytes, '\r', '\n')
		b.Bytes = append(b.Bytes, s...)
		b.Bytes = append(b.Bytes, '\r', '\n')
		return
	}
	b.Bytes = append(b.Bytes, '"')
	b.Bytes = append(b.Bytes, s...)
	b.Bytes = append(b.Bytes, '"')
}

// appendMoment writes RFC 3339 with milliseconds. Without a fraction time has a
// quick way to do it, so the fraction is put in afterwards.
func appendMoment(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// Span writes a duration as people do, and null for none.
func (b *Buffer) Span(key string, d time.Duration) {
	if d == 0 {
		b.Null(key)
		return
	}
	b.Key(key)
	var room [32]byte
	b.plain(appendSpan(room[:0], d))
}

// appendSpan writes what v1.Duration does.
func appendSpan(b []byte, d time.Duration) []byte {
	if d%time.Second == 0 && d < time.Minute {
		return append(strconv.AppendInt(b, int64(d/time.Second), 10), 's')
	}
	return append(b, v1.Duration(d).String()...)
}

// SomeSpan writes a duration unless it is zero.
func (b *Buffer) SomeSpan(key string, d time.Duration) {
	if d != 0 {
		b.Span(key, d)
	}
}

// Millis writes a duration in whole milliseconds.
func (b *Buffer) Millis(key string, d time.Duration) {
	b.Key(key)
	b.Int(d.Milliseconds())
}

// Names writes a list of texts unless it is empty.
func (b *Buffer) Names(key string, list []string) {
	if len(list) > 0 {
		Array(b, key, list, func(name *string) { b.String(*name) })
	}
}

// Array writes a list.
func Array[T any](b *Buffer, key string, list []T, each func(*T)) {
	b.Key(key)
	b.OpenList()
	for i := range list {
		b.Next()
		each(&list[i])
	}
	b.CloseList()
}

// Raw writes any bytes: in base64 in JSON, and as they are in RESP.
func (b *Buffer) Raw(key, value string) {
	b.Key(key)
	if b.form != JSON {
		b.bulk(value)
		return
	}
	b.Bytes = append(b.Bytes, '"')
	b.Bytes = base64.StdEncoding.AppendEncode(b.Bytes, []byte(value))
	b.Bytes = append(b.Bytes, '"')
}

// name begins a field whose key is a caller's.
func (b *Buffer) name(key string) {
	if b.form != JSON {
		b.Key(key)
		return
	}
	b.comma()
	b.Bytes = append(quote(b.Bytes, key), ':')
}

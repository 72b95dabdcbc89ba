package native

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A jsonBuffer is JSON being written. Its last byte says whether a comma is due.
type jsonBuffer []byte

func (b *jsonBuffer) open() { *b = append(*b, '{') }

func (b *jsonBuffer) close() { *b = append(*b, '}') }

func (b *jsonBuffer) comma() {
	if last := (*b)[len(*b)-1]; last != '{' && last != '[' {
		*b = append(*b, ',')
	}
}

// key begins a field. Keys are our own words and need no escapes.
func (b *jsonBuffer) key(key string) {
	b.comma()
	*b = append(*b, '"')
	*b = append(*b, key...)
	*b = append(*b, '"', ':')
}

func (b *jsonBuffer) text(key, value string) {
	b.key(key)
	*b = quote(*b, value)
}

// some writes a text unless it is empty.
func (b *jsonBuffer) some(key, value string) {
	if value != "" {
		b.text(key, value)
	}
}

func (b *jsonBuffer) number(key string, value uint64) {
	b.key(key)
	*b = strconv.AppendUint(*b, value, 10)
}

func (b *jsonBuffer) null(key string) {
	b.key(key)
	*b = append(*b, "null"...)
}

// moment writes a time, and null for none.
func (b *jsonBuffer) moment(key string, t time.Time) {
	if t.IsZero() {
		b.null(key)
		return
	}
	b.key(key)
	*b = append(*b, '"')
	*b = appendMoment(*b, t)
	*b = append(*b, '"')
}

// appendMoment writes RFC 3339 with milliseconds. Without a fraction time has a
// quick way to do it, so the fraction is put in afterwards.
func appendMoment(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// span writes a duration as people do, and null for none.
func (b *jsonBuffer) span(key string, d time.Duration) {
	if d == 0 {
		b.null(key)
		return
	}
	b.key(key)
	*b = append(*b, '"')
	*b = appendSpan(*b, d)
	*b = append(*b, '"')
}

// appendSpan writes what v1.Duration does.
func appendSpan(b []byte, d time.Duration) []byte {
	if d%time.Second == 0 && d < time.Minute {
		return append(strconv.AppendInt(b, int64(d/time.Second), 10), 's')
	}
	return append(b, v1.Duration(d).String()...)
}

// someSpan writes a duration unless it is zero.
func (b *jsonBuffer) someSpan(key string, d time.Duration) {
	if d != 0 {
		b.span(key, d)
	}
}

// count writes a number unless it is zero.
func (b *jsonBuffer) count(key string, n int) {
	if n != 0 {
		b.number(key, uint64(n))
	}
}

// names writes a list of texts unless it is empty.
func (b *jsonBuffer) names(key string, list []string) {
	if len(list) == 0 {
		return
	}
	b.key(key)
	*b = append(*b, '[')
	for _, name := range list {
		b.comma()
		*b = quote(*b, name)
	}
	*b = append(*b, ']')
}

// array writes a list.
func array[T any](b *jsonBuffer, key string, list []T, each func(*T)) {
	b.key(key)
	*b = append(*b, '[')
	for i := range list {
		b.comma()
		each(&list[i])
	}
	*b = append(*b, ']')
}

// millis writes what is left in whole milliseconds, never more than there is.
func (b *jsonBuffer) millis(key string, d time.Duration) {
	b.key(key)
	*b = strconv.AppendInt(*b, d.Milliseconds(), 10)
}

// bytes writes what need not be text, in base64.
func (b *jsonBuffer) bytes(key, value string) {
	b.key(key)
	*b = append(*b, '"')
	*b = base64.StdEncoding.AppendEncode(*b, []byte(value))
	*b = append(*b, '"')
}

func (b *jsonBuffer) yes(key string, is bool) {
	if is {
		b.key(key)
		*b = append(*b, "true"...)
	}
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
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n') // as in most texts: six bytes each would be a lot
	case '\t':
		return append(b, '\\', 't')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

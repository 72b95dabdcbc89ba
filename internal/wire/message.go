package wire

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A message visits the fields of a value that has tags: each field that is not zero has its tag in front, and tags
// ascend. A description of a message is one function, for both directions, that names the fields in the order of their
// tags. What is absent is zero, and a zero is absent, so that a value has one encoding.
//
// A tag is given once and for ever. A field that is added gets the next one, behind all others, and says by since which
// level it came with.
type message codec

// has is the beginning of each field: it writes the tag if there is something to write, or takes it if it is the next
// one, and reports whether the value follows. What the description passes by stays where it is, for end to refuse.
func (m *message) has(tag uint8, field string, some bool) bool {
	if m.writing {
		if !some {
			return false
		}
		m.b = append(m.b, tag)
	} else {
		if m.at == len(m.b) || m.b[m.at] != tag {
			return false
		}
		if m.trace != nil {
			m.trace(m.at, field)
		}
		m.at++
		m.last, m.lastField = tag, field
	}
	return m.since == 0 || (*codec)(m).reach(field)
}

// from says that the fields behind it, in the message that is described, came with a level.
func (m *message) from(level core.Level) { m.since = max(m.since, uint64(level)) }

// reach notes that there is a field of a later level, and refuses it in what was written at an earlier one.
func (c *codec) reach(field string) bool {
	c.needed = max(c.needed, c.since)
	if c.level != 0 && c.since > c.level {
		c.fail(field, fmt.Sprintf("there is none at feature level %d", c.level))
	}
	return c.fault == nil
}

// some refuses a zero that was read.
func (m *message) some(field string, some bool) {
	if !some && m.fault == nil {
		(*codec)(m).fail(field, "it is zero, and then it is left out")
	}
}

// must refuses a message without a field that it always has.
func (m *message) must(field string, some bool) {
	if !some && m.fault == nil {
		(*codec)(m).fail(field, "it is missing")
	}
}

// end refuses what no field of the description took: to lose it would be to come to another state than those who know
// what it means.
func (m *message) end() {
	c := (*codec)(m)
	if c.fault != nil || c.left() == 0 {
		return
	}
	switch tag := c.b[c.at]; {
	case tag == 0: // there is none
		c.end()
	case tag == c.last:
		c.fail(c.lastField, "it stands twice")
	case tag < c.last:
		c.fail(c.lastField, fmt.Sprintf("field %d stands behind it, out of order", tag))
	default:
		c.fail(fmt.Sprintf("field %d", tag), "it is not known here")
		c.fault.newer = true
	}
}

func (m *message) text(tag uint8, field string, p *string) {
	if m.has(tag, field, *p != "") {
		(*codec)(m).text(field, p)
		m.some(field, *p != "")
	}
}

// name is a text that is always there. The parts of a list have one wherever they can: a part that takes one byte would
// cost a hundred times as much memory.
func (m *message) name(tag uint8, field string, p *string) {
	m.text(tag, field, p)
	m.must(field, *p != "")
}

func (m *message) unsigned(tag uint8, field string, p *uint64) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).unsigned(field, p)
		m.some(field, *p != 0)
	}
}

func (m *message) unsigned32(tag uint8, field string, p *uint32) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).unsigned32(field, p)
		m.some(field, *p != 0)
	}
}

func (m *message) unsigned8(tag uint8, field string, p *uint8) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).unsigned8(field, p)
		m.some(field, *p != 0)
	}
}

func (m *message) signed(tag uint8, field string, p *int64) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).signed(field, p)
		m.some(field, *p != 0)
	}
}

func (m *message) number(tag uint8, field string, p *int) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).number(field, p)
		m.some(field, *p != 0)
	}
}

func (m *message) duration(tag uint8, field string, p *time.Duration) {
	m.signed(tag, field, (*int64)(p))
}
func (m *message) token(tag uint8, field string, p *leasehold.Token) {
	m.unsigned(tag, field, (*uint64)(p))
}

func (m *message) time(tag uint8, field string, p *core.Time) { m.signed(tag, field, (*int64)(p)) }

func (m *message) revision(tag uint8, field string, p *leasehold.Revision) {
	m.unsigned(tag, field, (*uint64)(p))
}

// flag is true if its tag is there, and has no value.
func (m *message) flag(tag uint8, field string, p *bool) {
	if m.has(tag, field, *p) && !m.writing {
		*p = true
	}
}

// oneOf is one byte of an enumeration. One that has no zero must be there.
func (m *message) oneOf(tag uint8, field string, p *uint8, among choice) {
	if m.has(tag, field, *p != 0) {
		(*codec)(m).oneOf(field, p, among)
		m.some(field, *p != 0)
	} else if among.first > 0 && m.fault == nil {
		(*codec)(m).fail(field, fmt.Sprintf("it is missing, and is one of %d to %d", among.first, among.last))
	}
}

func (m *message) labels(tag uint8, field string, p *leasehold.Labels) {
	if m.has(tag, field, len(*p) > 0) {
		(*codec)(m).labels(field, p)
		m.some(field, len(*p) > 0)
	}
}

func (m *message) names(tag uint8, field string, p *[]string) {
	values(m, tag, field, p, func(s *string) { (*codec)(m).text(field, s) })
}

// counts is a list of unsigned numbers.
func (m *message) counts(tag uint8, field string, p *[]uint64) {
	values(m, tag, field, p, func(n *uint64) { (*codec)(m).unsigned(field, n) })
}

// values is a list of what has no fields.
func values[T any](m *message, tag uint8, field string, p *[]T, each func(*T)) {
	if m.has(tag, field, len(*p) > 0) {
		list((*codec)(m), field, p, each)
		m.some(field, len(*p) > 0)
	}
}

// mayText is a text that may be empty, or not be there.
func (m *message) mayText(tag uint8, field string, p **string) {
	if m.has(tag, field, *p != nil) {
		if !m.writing {
			*p = new(string)
		}
		(*codec)(m).text(field, *p)
	}
}

// moment is a calendar time, in Unix nanoseconds. It is read as UTC, as the core makes it, so that equal moments are
// equal values.
func (m *message) moment(tag uint8, field string, p *time.Time) {
	if !m.has(tag, field, !p.IsZero()) {
		return
	}
	c, nano := (*codec)(m), int64(0)
	if c.writing {
		if nano = p.UnixNano(); !time.Unix(0, nano).Equal(*p) {
			c.fail(field, "the year is out of range")
		}
	}
	c.signed(field, &nano)
	if !c.writing && c.fault == nil {
		*p = time.Unix(0, nano).UTC()
	}
}

// large is the name of a large value: its digest, all of it, and its size.
func (m *message) large(tag uint8, field string, p **leasehold.Large) {
	if m.has(tag, field, *p != nil) {
		(*codec)(m).large(field, p)
	}
}

// content is the value of a record, which may be a large one instead; that has the tag after it.
func (m *message) content(tag uint8, field string, p *string, large **leasehold.Large) {
	m.text(tag, field, p)
	m.large(tag+1, "large", large)
	if *p != "" && *large != nil {
		(*codec)(m).fail(field, "there are two of them")
	}
}

// maxDepth is how deep messages may be in messages. Transactions may be nested as often as the core allows operations,
// and each is in an operation.
const maxDepth = 2*leasehold.MaxOps + 8

// An outer is what has to be known again behind a message in a message.
type outer struct {
	b         []byte // while reading
	at        int    // while writing: where the body begins
	since     uint64
	last      uint8
	lastField string
}

// enter begins a message in the message: the length of its body, and its fields.
func (m *message) enter(field string) outer {
	c := (*codec)(m)
	o := outer{c.b, len(c.b) + 1, c.since, c.last, c.lastField}
	if c.depth++; c.depth > maxDepth {
		c.fail(field, "it is nested too deep")
	}
	if c.writing {
		c.b = append(c.b, 0)
		return o
	}
	n := c.length(field)
	if c.whole == nil {
		c.whole = c.b
	}
	c.b = c.b[:c.at+n]
	c.last, c.lastField = 0, ""
	return o
}

// leave ends what enter began.
func (m *message) leave(o outer) {
	c := (*codec)(m)
	c.depth--
	c.since = o.since
	if c.writing {
		c.shut(o.at)
		return
	}
	m.end()
	c.b, c.last, c.lastField = o.b, o.last, o.lastField
	if c.fault != nil {
		c.at = len(c.b)
	}
}

// inner is a message in the message. If none of its fields is there, neither is it.
func inner[T any](m *message, tag uint8, field string, p *T, fields func(*T)) {
	if m.writing {
		from := len(m.b)
		m.b = append(m.b, tag)
		o := m.enter(field)
		fields(p)
		if m.leave(o); len(m.b) == from+2 {
			m.b = m.b[:from]
		}
		return
	}
	if m.has(tag, field, true) {
		from := m.at
		o := m.enter(field)
		fields(p)
		m.leave(o)
		m.some(field, m.at != from+1)
	}
}

// maybe is a message that need not be there, and that may have no fields if it is.
func maybe[T any](m *message, tag uint8, field string, p **T, fields func(*T)) {
	if !m.has(tag, field, *p != nil) {
		return
	}
	if !m.writing {
		*p = new(T)
	}
	o := m.enter(field)
	fields(*p)
	m.leave(o)
}

// several is a list of messages, and how many the core accepts at most: what few bytes claim must not cost much memory
// before anybody finds out.
func several[T any](m *message, tag uint8, field string, p *[]T, most int, fields func(*T)) {
	c, n := (*codec)(m), uint64(len(*p))
	if !m.has(tag, field, n > 0) {
		return
	}
	c.unsigned(field, &n)
	m.some(field, n > 0)
	switch {
	case c.fault != nil:
	case n > uint64(most):
		c.fail(field, fmt.Sprintf("it has %d parts, and at most %d are allowed", n, most))
	case c.writing:
	case n > uint64(c.left()): // each takes a byte at least
		c.fail(field, tooLong)
	default:
		*p = make([]T, n)
	}
	for i := range *p {
		if c.fault != nil {
			return
		}
		o := m.enter(field)
		fields(&(*p)[i])
		m.leave(o)
	}
}

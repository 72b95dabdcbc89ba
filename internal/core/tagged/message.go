package tagged

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
)

// A Message visits the fields of a value that has tags: each field that is not zero has its tag in front, and tags
// ascend. A description of a message is one function, for both directions, that names the fields in the order of their
// tags. What is absent is zero, and a zero is absent, so that a value has one encoding.
//
// A tag is given once and for ever. A field that is added gets the next one, behind all others, and says by since which
// level it came with.
type Message Codec

// Aside in the tag of a field marks one that does not matter for what is essential of a value. It is not written.
const Aside = 0x80

// Codec returns the codec that the message is visited by.
func (m *Message) Codec() *Codec { return (*Codec)(m) }

// Fail notes the first thing that is wrong.
func (m *Message) Fail(field, reason string) { (*Codec)(m).Fail(field, reason) }

// Part counts the comparisons and operations of a transaction, and of all that are nested in it.
func (m *Message) Part() {
	if m.Parts++; m.Parts > 3*leasehold.MaxOps {
		m.Fail("nested", "there are more comparisons and operations than a transaction may have")
	}
}

// has is the beginning of each field: it writes the tag if there is something to write, or takes it if it is the next
// one, and reports whether the value follows. What the description passes by stays where it is, for end to refuse.
func (m *Message) has(tag uint8, field string, some bool) bool {
	if tag&Aside != 0 {
		if m.Essence {
			return false
		}
		tag &^= Aside
	}
	if m.Writing {
		if !some {
			return false
		}
		m.B = append(m.B, tag)
	} else {
		if m.At == len(m.B) || m.B[m.At] != tag {
			return false
		}
		if m.Trace != nil {
			m.Trace(m.At, field)
		}
		m.At++
		m.Last, m.LastField = tag, field
	}
	return m.Since == 0 || (*Codec)(m).reach(field)
}

// loosen notes that reading gives another value than the one that is written.
func (m *Message) loosen(another bool) { m.Loose = m.Loose || another && m.Writing }

// From says that the fields behind it, in the message that is described, came with a level.
func (m *Message) From(level uint64) { m.Since = max(m.Since, level) }

// reach notes that there is a field of a later level, and refuses it in what was written at an earlier one.
func (c *Codec) reach(field string) bool {
	c.Needed = max(c.Needed, c.Since)
	if c.Level != 0 && c.Since > c.Level {
		c.Fail(field, fmt.Sprintf("there is none at feature level %d", c.Level))
	}
	return c.Fault == nil
}

// some refuses a zero that was read.
func (m *Message) some(field string, some bool) {
	if !some && m.Fault == nil {
		(*Codec)(m).Fail(field, "it is zero, and then it is left out")
	}
}

// Must refuses a message without a field that it always has.
func (m *Message) Must(field string, some bool) {
	if !some && m.Fault == nil {
		(*Codec)(m).Fail(field, "it is missing")
	}
}

// End refuses what no field of the description took: to lose it would be to come to another state than those who know
// what it means.
func (m *Message) End() {
	c := (*Codec)(m)
	if c.Fault != nil || c.Left() == 0 {
		return
	}
	switch tag := c.B[c.At]; {
	case tag == 0: // there is none
		c.End()
	case tag == c.Last:
		c.Fail(c.LastField, "it stands twice")
	case tag < c.Last:
		c.Fail(c.LastField, fmt.Sprintf("field %d stands behind it, out of order", tag))
	default:
		c.Fail(fmt.Sprintf("field %d", tag), "it is not known here")
		c.Fault.Newer = true
	}
}

// Text is a text, which is absent if it is empty. The like holds for all fields.
func (m *Message) Text(tag uint8, field string, p *string) {
	if m.has(tag, field, *p != "") {
		(*Codec)(m).Text(field, p)
		m.some(field, *p != "")
	}
}

// Name is a text that is always there. The parts of a list have one wherever they can: a part that takes one byte would
// cost a hundred times as much memory.
func (m *Message) Name(tag uint8, field string, p *string) {
	m.Text(tag, field, p)
	m.Must(field, *p != "")
}

func (m *Message) Unsigned(tag uint8, field string, p *uint64) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).Unsigned(field, p)
		m.some(field, *p != 0)
	}
}

func (m *Message) Unsigned32(tag uint8, field string, p *uint32) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).Unsigned32(field, p)
		m.some(field, *p != 0)
	}
}

func (m *Message) Unsigned8(tag uint8, field string, p *uint8) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).Unsigned8(field, p)
		m.some(field, *p != 0)
	}
}

func (m *Message) Signed(tag uint8, field string, p *int64) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).Signed(field, p)
		m.some(field, *p != 0)
	}
}

func (m *Message) Number(tag uint8, field string, p *int) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).Number(field, p)
		m.some(field, *p != 0)
	}
}

func (m *Message) Duration(tag uint8, field string, p *time.Duration) {
	m.Signed(tag, field, (*int64)(p))
}
func (m *Message) Token(tag uint8, field string, p *leasehold.Token) {
	m.Unsigned(tag, field, (*uint64)(p))
}

func (m *Message) Revision(tag uint8, field string, p *leasehold.Revision) {
	m.Unsigned(tag, field, (*uint64)(p))
}

// Flag is true if its tag is there, and has no value.
func (m *Message) Flag(tag uint8, field string, p *bool) {
	if m.has(tag, field, *p) && !m.Writing {
		*p = true
	}
}

// OneOf is one byte of an enumeration. One that has no zero must be there.
func (m *Message) OneOf(tag uint8, field string, p *uint8, among Choice) {
	if m.has(tag, field, *p != 0) {
		(*Codec)(m).OneOf(field, p, among)
		m.some(field, *p != 0)
	} else if among.First > 0 && m.Fault == nil {
		(*Codec)(m).Fail(field, fmt.Sprintf("it is missing, and is one of %d to %d", among.First, among.Last))
	}
}

func (m *Message) Labels(tag uint8, field string, p *leasehold.Labels) {
	m.loosen(*p != nil && len(*p) == 0)
	if m.has(tag, field, len(*p) > 0) {
		(*Codec)(m).Labels(field, p)
		m.some(field, len(*p) > 0)
	}
}

func (m *Message) Names(tag uint8, field string, p *[]string) {
	Values(m, tag, field, p, func(s *string) { (*Codec)(m).Text(field, s) })
}

// Counts is a list of unsigned numbers.
func (m *Message) Counts(tag uint8, field string, p *[]uint64) {
	Values(m, tag, field, p, func(n *uint64) { (*Codec)(m).Unsigned(field, n) })
}

// Values is a list of what has no fields.
func Values[T any](m *Message, tag uint8, field string, p *[]T, each func(*T)) {
	m.loosen(*p != nil && len(*p) == 0)
	if m.has(tag, field, len(*p) > 0) {
		list((*Codec)(m), field, p, each)
		m.some(field, len(*p) > 0)
	}
}

// MayText is a text that may be empty, or not be there.
func (m *Message) MayText(tag uint8, field string, p **string) {
	m.loosen(*p != nil)
	if m.has(tag, field, *p != nil) {
		if !m.Writing {
			*p = new(string)
		}
		(*Codec)(m).Text(field, *p)
	}
}

// Moment is a calendar time, in Unix nanoseconds. It is read as UTC, as the core makes it, so that equal moments are
// equal values.
func (m *Message) Moment(tag uint8, field string, p *time.Time) {
	if !m.has(tag, field, !p.IsZero()) {
		return
	}
	m.loosen(true) // in another zone
	c, nano := (*Codec)(m), int64(0)
	if c.Writing {
		if nano = p.UnixNano(); !time.Unix(0, nano).Equal(*p) {
			c.Fail(field, "the year is out of range")
		}
	}
	c.Signed(field, &nano)
	if !c.Writing && c.Fault == nil {
		*p = time.Unix(0, nano).UTC()
	}
}

// Large is the name of a large value: its digest, all of it, and its size.
func (m *Message) Large(tag uint8, field string, p **leasehold.Large) {
	m.loosen(*p != nil)
	if m.has(tag, field, *p != nil) {
		(*Codec)(m).Large(field, p)
	}
}

// Content is the value of a record, which may be a large one instead; that has the tag after it.
func (m *Message) Content(tag uint8, field string, p *string, large **leasehold.Large) {
	m.Text(tag, field, p)
	m.Large(tag+1, "large", large)
	if *p != "" && *large != nil {
		(*Codec)(m).Fail(field, "there are two of them")
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
func (m *Message) enter(field string) outer {
	c := (*Codec)(m)
	o := outer{c.B, len(c.B) + 1, c.Since, c.Last, c.LastField}
	if c.Depth++; c.Depth > maxDepth {
		c.Fail(field, "it is nested too deep")
	}
	if c.Writing {
		c.B = append(c.B, 0)
		return o
	}
	n := c.Length(field)
	if c.whole == nil {
		c.whole = c.B
	}
	c.B = c.B[:c.At+n]
	c.Last, c.LastField = 0, ""
	return o
}

// leave ends what enter began.
func (m *Message) leave(o outer) {
	c := (*Codec)(m)
	c.Depth--
	c.Since = o.since
	if c.Writing {
		c.Shut(o.at)
		return
	}
	m.End()
	c.B, c.Last, c.LastField = o.b, o.last, o.lastField
	if c.Fault != nil {
		c.At = len(c.B)
	}
}

// Of is a description for the message that it is to describe.
func Of[T any](m *Message, fields func(*T, *Message)) func(*T) { return func(v *T) { fields(v, m) } }

// Inner is a message in the message. If none of its fields is there, neither is it.
func Inner[T any](m *Message, tag uint8, field string, p *T, fields func(*T)) {
	if m.Writing {
		if tag&Aside != 0 && m.Essence {
			return
		}
		from := len(m.B)
		m.B = append(m.B, tag&^Aside)
		o := m.enter(field)
		fields(p)
		if m.leave(o); len(m.B) == from+2 {
			m.B = m.B[:from]
		}
		return
	}
	if m.has(tag, field, true) {
		from := m.At
		o := m.enter(field)
		fields(p)
		m.leave(o)
		m.some(field, m.At != from+1)
	}
}

// Maybe is a message that need not be there, and that may have no fields if it is.
func Maybe[T any](m *Message, tag uint8, field string, p **T, fields func(*T)) {
	m.loosen(*p != nil) // it may change
	Own(m, tag, field, p, fields)
}

// Own is Maybe for what is made for the value alone, and never changed.
func Own[T any](m *Message, tag uint8, field string, p **T, fields func(*T)) {
	if !m.has(tag, field, *p != nil) {
		return
	}
	if !m.Writing {
		*p = new(T)
	}
	o := m.enter(field)
	fields(*p)
	m.leave(o)
}

// Several is a list of messages, and how many the core accepts at most: what few bytes claim must not cost much memory
// before anybody finds out.
func Several[T any](m *Message, tag uint8, field string, p *[]T, most int, fields func(*T)) {
	c, n := (*Codec)(m), uint64(len(*p))
	m.loosen(*p != nil && n == 0)
	if !m.has(tag, field, n > 0) {
		return
	}
	c.Unsigned(field, &n)
	m.some(field, n > 0)
	switch {
	case c.Fault != nil:
	case n > uint64(most):
		c.Fail(field, fmt.Sprintf("it has %d parts, and at most %d are allowed", n, most))
	case c.Writing:
	case n > uint64(c.Left()): // each takes a byte at least
		c.Fail(field, TooLong)
	default:
		*p = make([]T, n)
	}
	for i := range *p {
		if c.Fault != nil {
			return
		}
		o := m.enter(field)
		fields(&(*p)[i])
		m.leave(o)
	}
}

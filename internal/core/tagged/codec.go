// Package tagged writes and reads values whose fields have tags: one description of a value is for both directions, and
// a value has one encoding.
package tagged

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leasehold/leasehold"
)

// The two ways in which bytes are refused, to compare with errors.Is. Neither ever
// goes away by trying again.
var (
	// ErrUnknown is the error of bytes that another version wrote, nearly always a newer one. They may be
	// perfectly good: this server must stop and leave them alone.
	ErrUnknown = errors.New("written by another version")

	// ErrMalformed is the error of bytes that no server wrote, or that were
	// damaged since.
	ErrMalformed = errors.New("malformed")
)

// A Refusal is a sentence for people that errors.Is knows as one of the above.
type Refusal struct {
	Kind error
	Text string
}

func (r *Refusal) Error() string { return r.Text }
func (r *Refusal) Unwrap() error { return r.Kind }

// Malformed refuses bytes that no server wrote.
func Malformed(format string, args ...any) error {
	return &Refusal{ErrMalformed, fmt.Sprintf(format, args...)}
}

// Unknown refuses bytes that a newer server wrote.
func Unknown(format string, args ...any) error {
	return &Refusal{ErrUnknown, fmt.Sprintf(format, args...) + ": this server is too old for it, start a newer one"}
}

// A Codec visits the fields of a value in the order of their bytes, and either writes or reads
// them. A layout is therefore one function for both directions, and what is written cannot
// drift apart from what is read. A codec that writes never changes the value: a frozen state is
// shared with the state that goes on.
//
// After the first fault nothing more is read, and every further read gives zero, so a layout
// needs no check after each field: the one who began looks at Fault at the end.
type Codec struct {
	Writing bool
	B       []byte // what is written, or what is to be read
	At      int    // where reading goes on
	Base    int64  // where B begins in the whole, for messages
	Fault   *Fault

	Level  uint64 // at which what is read was written; 0: at any that is known
	Needed uint64 // the level that the kinds which were read came with; in a body, its fields

	// Of the message that is visited: see Message.
	Since     uint64 // the level of the fields that come next; 0: the first
	Last      uint8  // the last tag that was there
	LastField string
	Depth     int                        // how many messages it is in
	Parts     int                        // of a transaction
	Trace     func(at int, field string) // tests see where each field begins
	Essence   bool                       // only what has no Aside is written
	Loose     bool                       // what was written is read as another value

	Known any // what a reader keeps of what it read, to be shared

	// What the strings of a short body are cut from: one copy instead of many.
	whole    []byte // the body, while a message in it is read; nil: it is B
	shared   string
	sharedAt int
}

// Message returns the codec as one of a message.
func (c *Codec) Message() *Message { return (*Message)(c) }

// A Fault is what is wrong with one field.
type Fault struct {
	Field, Reason string
	At            int64
	Newer         bool // a newer server may have written it
}

// What is wrong with bytes that end too early.
const (
	CutOff  = "it is cut off"
	TooLong = "it is longer than what is left"
)

// Fail notes the first thing that is wrong.
func (c *Codec) Fail(field, reason string) {
	if c.Fault == nil {
		c.Fault = &Fault{Field: field, Reason: reason, At: c.Base + int64(c.At)}
	}
	// Nothing is left, so every later read fails as well, and no loop goes on over garbage.
	c.At = len(c.B)
}

// Refused turns the fault of something that was read into an error.
func (c *Codec) Refused(what string) error {
	if c.Fault.Newer {
		return Unknown("%s has %s at byte %d, which is not known here", what, c.Fault.Field, c.Fault.At)
	}
	return Malformed("%s is malformed at byte %d, %s: %s", what, c.Fault.At, c.Fault.Field, c.Fault.Reason)
}

// Left is how many bytes are still to be read.
func (c *Codec) Left() int { return len(c.B) - c.At }

// End refuses bytes after the last field.
func (c *Codec) End() {
	if c.Fault == nil && c.Left() > 0 {
		c.Fail("end", fmt.Sprintf("%d bytes follow that belong to nothing", c.Left()))
	}
}

// Unsigned is a number in groups of seven bits, the lowest first. Only the shortest form is
// accepted: a value has one encoding, so equal states have equal checksums.
func (c *Codec) Unsigned(field string, p *uint64) {
	if c.Writing {
		c.B = binary.AppendUvarint(c.B, *p)
		return
	}
	// Most numbers and nearly all lengths are one byte.
	if c.At < len(c.B) && c.B[c.At] < 0x80 {
		*p = uint64(c.B[c.At])
		c.At++
		return
	}
	v, n := binary.Uvarint(c.B[c.At:])
	switch {
	case n == 0:
		c.Fail(field, CutOff)
	case n < 0:
		c.Fail(field, "the number has more than 64 bits")
	case c.B[c.At+n-1] == 0:
		c.Fail(field, "the number is written longer than it need be")
	default:
		*p = v
		c.At += n
	}
}

// Signed is a number whose sign is its lowest bit, so that small ones are short
// whatever their sign.
func (c *Codec) Signed(field string, p *int64) {
	if c.Writing {
		c.B = binary.AppendUvarint(c.B, uint64(*p<<1)^uint64(*p>>63))
		return
	}
	var v uint64
	c.Unsigned(field, &v)
	*p = int64(v>>1) ^ -int64(v&1)
}

// Number is an int, which may be smaller on the machine that reads than on the one that wrote.
func (c *Codec) Number(field string, p *int) {
	v := int64(*p)
	c.Signed(field, &v)
	if c.Writing {
		return
	}
	if int64(int(v)) != v {
		c.Fail(field, "the number is too large for this machine")
		return
	}
	*p = int(v)
}

func (c *Codec) Unsigned32(field string, p *uint32) {
	v := uint64(*p)
	c.Unsigned(field, &v)
	if c.Writing {
		return
	}
	if v > math.MaxUint32 {
		c.Fail(field, "the number has more than 32 bits")
		return
	}
	*p = uint32(v)
}

func (c *Codec) Unsigned8(field string, p *uint8) {
	v := uint64(*p)
	c.Unsigned(field, &v)
	if c.Writing {
		return
	}
	if v > math.MaxUint8 {
		c.Fail(field, "the number has more than 8 bits")
		return
	}
	*p = uint8(v)
}

// A Choice is the numbers that an enumeration has, from its first to its last.
type Choice struct{ First, Last uint8 }

// OneOf is one byte of an enumeration. The range is checked when writing too: what would not be
// read back must not get into the log, where it would stop every server.
func (c *Codec) OneOf(field string, p *uint8, among Choice) {
	v := *p
	if !c.Writing {
		if c.Left() == 0 {
			c.Fail(field, CutOff)
			return
		}
		v = c.B[c.At]
	}
	if v < among.First || v > among.Last {
		c.Fail(field, fmt.Sprintf("%d is none of %d to %d", v, among.First, among.Last))
		return
	}
	if c.Writing {
		c.B = append(c.B, v)
		return
	}
	*p = v
	c.At++
}

// Text is a length and that many bytes.
func (c *Codec) Text(field string, p *string) {
	if c.Writing {
		c.B = append(binary.AppendUvarint(c.B, uint64(len(*p))), *p...)
		return
	}
	*p = c.cut(c.Length(field))
}

// Large is the name of a large value: its digest and its size.
func (c *Codec) Large(field string, p **leasehold.Large) {
	if !c.Writing {
		*p = new(leasehold.Large)
		if c.Left() < len((*p).SHA256) {
			c.Fail(field, CutOff)
			return
		}
		c.At += copy((*p).SHA256[:], c.B[c.At:])
	} else {
		c.B = append(c.B, (*p).SHA256[:]...)
	}
	size := uint64((*p).Size)
	if c.Unsigned("size", &size); size > math.MaxInt64 {
		c.Fail("size", "the number has more than 63 bits")
	} else if !c.Writing {
		(*p).Size = int64(size)
	}
}

// Length is how many bytes follow; at most those that are there, so that nobody can make a
// server allocate more than they sent.
func (c *Codec) Length(field string) int {
	var n uint64
	c.Unsigned(field, &n)
	if n > uint64(c.Left()) {
		c.Fail(field, TooLong)
		return 0
	}
	return int(n)
}

// maxShared is the longest body whose strings share one copy. One allocation instead of a dozen
// makes renewals cheap to read. The limit bounds what an id that is kept for minutes keeps in
// memory with it: in a longer body each string is copied by itself.
const maxShared = 256

// cut reads a string. It never keeps the bytes it is read from alive.
func (c *Codec) cut(n int) string {
	from, whole := c.At, c.B
	if c.whole != nil {
		whole = c.whole
	}
	c.At += n
	switch {
	case n == 0:
		return ""
	case len(whole) > maxShared:
		return string(c.B[from:c.At])
	// From the first string on, everything in the body may be part of some string.
	case c.shared == "":
		c.shared, c.sharedAt = string(whole[from:]), from
	}
	return c.shared[from-c.sharedAt : c.At-c.sharedAt]
}

// minLabel is the least that a label takes: a key of one byte and no value.
const minLabel = 3

// Labels are a count, and a key and a value each. Keys ascend and are not empty, so that equal
// labels have equal bytes.
func (c *Codec) Labels(field string, p *leasehold.Labels) {
	n := uint64(len(*p))
	c.Unsigned(field, &n)
	if !c.Writing && n > 0 {
		// One more than there are bytes for, if so many are claimed: it will be
		// the one that is cut off.
		*p = make(leasehold.Labels, min(n, uint64(c.Left()/minLabel+1)))
	}
	last := ""
	for i := range *p {
		l := &(*p)[i]
		c.Text("label key", &l.Key)
		if l.Key <= last {
			c.Fail("label key", "it is empty, or stands twice, or out of order")
			return
		}
		c.Text("label value", &l.Value)
		last = l.Key
	}
}

// list is a count and that many values, each of which takes a byte at least. That bounds what is allocated: a count
// that the bytes cannot hold is not believed.
func list[T any](c *Codec, field string, p *[]T, each func(*T)) {
	n := uint64(len(*p))
	c.Unsigned(field, &n)
	if !c.Writing && n > 0 {
		// As with labels: the last may be one that is cut off.
		*p = make([]T, min(n, uint64(c.Left()+1)))
	}
	for i := range *p {
		if c.Fault != nil {
			return
		}
		each(&(*p)[i])
	}
	if !c.Writing && c.Fault == nil && n != uint64(len(*p)) {
		c.Fail(field, TooLong)
	}
}

// Open begins a frame, which is a kind, a length and a body of that many bytes: it writes the
// head, with one byte for the length, and returns where the body begins. Shut corrects the head.
// Bodies are nearly always short, so that the length is rarely moved.
func (c *Codec) Open(kind uint64) (body int) {
	c.B = binary.AppendUvarint(c.B, kind)
	c.B = append(c.B, 0)
	return len(c.B)
}

func (c *Codec) Shut(body int) {
	n := len(c.B) - body
	if n < 0x80 {
		c.B[body-1] = byte(n)
		return
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	c.B = append(c.B, length[1:size]...)
	copy(c.B[body-1+size:], c.B[body:body+n])
	copy(c.B[body-1:], length[:size])
}

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
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

// A refusal is a sentence for people that errors.Is knows as one of the above.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

func malformed(format string, args ...any) error {
	return &refusal{ErrMalformed, fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) error {
	return &refusal{ErrUnknown, fmt.Sprintf(format, args...) + ": this server is too old for it, start a newer one"}
}

// A codec visits the fields of a value in the order of their bytes, and either writes or reads
// them. A layout is therefore one function for both directions, and what is written cannot
// drift apart from what is read. A codec that writes never changes the value: a frozen state is
// shared with the state that goes on.
//
// After the first fault nothing more is read, and every further read gives zero, so a layout
// needs no check after each field: the one who began looks at fault at the end.
type codec struct {
	writing bool
	b       []byte // what is written, or what is to be read
	at      int    // where reading goes on
	base    int64  // where b begins in the whole, for messages
	fault   *fault

	level  uint64 // at which what is read was written; 0: at any that is known
	needed uint64 // the level that the kinds which were read came with; in a body, its fields
	fields uint64 // the level that the fields of commands which were read came with

	// Of the message that is visited: see message.
	since     uint64 // the level of the fields that come next; 0: the first
	last      uint8  // the last tag that was there
	lastField string
	depth     int                        // how many messages it is in
	parts     int                        // of a transaction
	trace     func(at int, field string) // tests see where each field begins

	owners map[access.Owner]*access.Owner // that were read, to be shared

	// What the strings of a short body are cut from: one copy instead of many.
	whole    []byte // the body, while a message in it is read; nil: it is b
	shared   string
	sharedAt int
}

// A fault is what is wrong with one field.
type fault struct {
	field, reason string
	at            int64
	newer         bool // a newer server may have written it
}

const (
	cutOff  = "it is cut off"
	tooLong = "it is longer than what is left"
)

func (c *codec) fail(field, reason string) {
	if c.fault == nil {
		c.fault = &fault{field: field, reason: reason, at: c.base + int64(c.at)}
	}
	// Nothing is left, so every later read fails as well, and no loop goes on over garbage.
	c.at = len(c.b)
}

// refused turns the fault of something that was read into an error.
func (c *codec) refused(what string) error {
	if c.fault.newer {
		return unknown("%s has %s at byte %d, which is not known here", what, c.fault.field, c.fault.at)
	}
	return malformed("%s is malformed at byte %d, %s: %s", what, c.fault.at, c.fault.field, c.fault.reason)
}

// left is how many bytes are still to be read.
func (c *codec) left() int { return len(c.b) - c.at }

// end refuses bytes after the last field.
func (c *codec) end() {
	if c.fault == nil && c.left() > 0 {
		c.fail("end", fmt.Sprintf("%d bytes follow that belong to nothing", c.left()))
	}
}

// unsigned is a number in groups of seven bits, the lowest first. Only the shortest form is
// accepted: a value has one encoding, so equal states have equal checksums.
func (c *codec) unsigned(field string, p *uint64) {
	if c.writing {
		c.b = binary.AppendUvarint(c.b, *p)
		return
	}
	// Most numbers and nearly all lengths are one byte.
	if c.at < len(c.b) && c.b[c.at] < 0x80 {
		*p = uint64(c.b[c.at])
		c.at++
		return
	}
	v, n := binary.Uvarint(c.b[c.at:])
	switch {
	case n == 0:
		c.fail(field, cutOff)
	case n < 0:
		c.fail(field, "the number has more than 64 bits")
	case c.b[c.at+n-1] == 0:
		c.fail(field, "the number is written longer than it need be")
	default:
		*p = v
		c.at += n
	}
}

// signed is a number whose sign is its lowest bit, so that small ones are short
// whatever their sign.
func (c *codec) signed(field string, p *int64) {
	if c.writing {
		c.b = binary.AppendUvarint(c.b, uint64(*p<<1)^uint64(*p>>63))
		return
	}
	var v uint64
	c.unsigned(field, &v)
	*p = int64(v>>1) ^ -int64(v&1)
}

func (c *codec) time(field string, p *core.Time) { c.signed(field, (*int64)(p)) }

// number is an int, which may be smaller on the machine that reads than on the one that wrote.
func (c *codec) number(field string, p *int) {
	v := int64(*p)
	c.signed(field, &v)
	if c.writing {
		return
	}
	if int64(int(v)) != v {
		c.fail(field, "the number is too large for this machine")
		return
	}
	*p = int(v)
}

func (c *codec) unsigned32(field string, p *uint32) {
	v := uint64(*p)
	c.unsigned(field, &v)
	if c.writing {
		return
	}
	if v > math.MaxUint32 {
		c.fail(field, "the number has more than 32 bits")
		return
	}
	*p = uint32(v)
}

func (c *codec) unsigned8(field string, p *uint8) {
	v := uint64(*p)
	c.unsigned(field, &v)
	if c.writing {
		return
	}
	if v > math.MaxUint8 {
		c.fail(field, "the number has more than 8 bits")
		return
	}
	*p = uint8(v)
}

// A choice is the numbers that an enumeration has, from its first to its last.
type choice struct{ first, last uint8 }

// The enumerations of the dictionary. An event that is no end has no How.
var (
	states   = choice{uint8(leasehold.Available), uint8(leasehold.Expired)}
	hows     = choice{uint8(leasehold.Released), uint8(leasehold.Abandoned)}
	maybeHow = choice{0, uint8(leasehold.Abandoned)}
	kinds    = choice{uint8(leasehold.Queued), uint8(leasehold.ReservationCancelled)}
	codes    = choice{uint8(leasehold.Held), uint8(leasehold.Refused)}
	uncleans = choice{uint8(leasehold.AllowNext), uint8(leasehold.AwaitAcknowledgement)}
	alarms   = choice{uint8(leasehold.HeldLong), uint8(leasehold.LateRenewal)}

	maybeAlarm = choice{0, uint8(leasehold.LateRenewal)}
	taskStates = choice{uint8(leasehold.TaskTodo), uint8(leasehold.TaskFailed)}
	atStarts   = choice{uint8(leasehold.WaitAtStart), uint8(leasehold.EndAtStart)}
	limitsBy   = choice{uint8(leasehold.EachHolder), uint8(leasehold.EachPrefix)}
)

// The enumerations of the core.
var (
	whats     = choice{uint8(core.RecordCreate), uint8(core.LeaseBreak)}
	relations = choice{uint8(core.Equal), uint8(core.Greater)}
	doings    = choice{uint8(core.Put), uint8(core.Nested)}
	chores    = choice{uint8(core.CollectSession), uint8(core.FollowDefinition)}
	sortings  = choice{uint8(core.ByPath), uint8(core.ByValue)}
	picks     = choice{uint8(core.TTLAsSaid), uint8(core.TTLUnattended)}
)

// oneOf is one byte of an enumeration. The range is checked when writing too: what would not be
// read back must not get into the log, where it would stop every server.
func (c *codec) oneOf(field string, p *uint8, among choice) {
	v := *p
	if !c.writing {
		if c.left() == 0 {
			c.fail(field, cutOff)
			return
		}
		v = c.b[c.at]
	}
	if v < among.first || v > among.last {
		c.fail(field, fmt.Sprintf("%d is none of %d to %d", v, among.first, among.last))
		return
	}
	if c.writing {
		c.b = append(c.b, v)
		return
	}
	*p = v
	c.at++
}

// text is a length and that many bytes.
func (c *codec) text(field string, p *string) {
	if c.writing {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(*p))), *p...)
		return
	}
	*p = c.cut(c.length(field))
}

// large is the name of a large value: its digest and its size.
func (c *codec) large(field string, p **leasehold.Large) {
	if !c.writing {
		*p = new(leasehold.Large)
		if c.left() < len((*p).SHA256) {
			c.fail(field, cutOff)
			return
		}
		c.at += copy((*p).SHA256[:], c.b[c.at:])
	} else {
		c.b = append(c.b, (*p).SHA256[:]...)
	}
	size := uint64((*p).Size)
	if c.unsigned("size", &size); size > math.MaxInt64 {
		c.fail("size", "the number has more than 63 bits")
	} else if !c.writing {
		(*p).Size = int64(size)
	}
}

// length is how many bytes follow; at most those that are there, so that nobody can make a
// server allocate more than they sent.
func (c *codec) length(field string) int {
	var n uint64
	c.unsigned(field, &n)
	if n > uint64(c.left()) {
		c.fail(field, tooLong)
		return 0
	}
	return int(n)
}

// maxShared is the longest body whose strings share one copy. One allocation instead of a dozen
// makes renewals cheap to read. The limit bounds what an id that is kept for minutes keeps in
// memory with it: in a longer body each string is copied by itself.
const maxShared = 256

// cut reads a string. It never keeps the bytes it is read from alive.
func (c *codec) cut(n int) string {
	from, whole := c.at, c.b
	if c.whole != nil {
		whole = c.whole
	}
	c.at += n
	switch {
	case n == 0:
		return ""
	case len(whole) > maxShared:
		return string(c.b[from:c.at])
	// From the first string on, everything in the body may be part of some string.
	case c.shared == "":
		c.shared, c.sharedAt = string(whole[from:]), from
	}
	return c.shared[from-c.sharedAt : c.at-c.sharedAt]
}

// minLabel is the least that a label takes: a key of one byte and no value.
const minLabel = 3

// labels are a count, and a key and a value each. Keys ascend and are not empty, so that equal
// labels have equal bytes.
func (c *codec) labels(field string, p *leasehold.Labels) {
	n := uint64(len(*p))
	c.unsigned(field, &n)
	if !c.writing && n > 0 {
		// One more than there are bytes for, if so many are claimed: it will be
		// the one that is cut off.
		*p = make(leasehold.Labels, min(n, uint64(c.left()/minLabel+1)))
	}
	last := ""
	for i := range *p {
		l := &(*p)[i]
		c.text("label key", &l.Key)
		if l.Key <= last {
			c.fail("label key", "it is empty, or stands twice, or out of order")
			return
		}
		c.text("label value", &l.Value)
		last = l.Key
	}
}

// list is a count and that many values, each of which takes a byte at least. That bounds what is allocated: a count
// that the bytes cannot hold is not believed.
func list[T any](c *codec, field string, p *[]T, each func(*T)) {
	n := uint64(len(*p))
	c.unsigned(field, &n)
	if !c.writing && n > 0 {
		// As with labels: the last may be one that is cut off.
		*p = make([]T, min(n, uint64(c.left()+1)))
	}
	for i := range *p {
		if c.fault != nil {
			return
		}
		each(&(*p)[i])
	}
	if !c.writing && c.fault == nil && n != uint64(len(*p)) {
		c.fail(field, tooLong)
	}
}

// A frame is a kind, a length and a body of that many bytes. open writes its head, with one
// byte for the length, and returns where the body begins; shut corrects the head. Bodies are
// nearly always short, so that the length is rarely moved.
func (c *codec) open(kind uint64) (body int) {
	c.b = binary.AppendUvarint(c.b, kind)
	c.b = append(c.b, 0)
	return len(c.b)
}

func (c *codec) shut(body int) {
	n := len(c.b) - body
	if n < 0x80 {
		c.b[body-1] = byte(n)
		return
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	c.b = append(c.b, length[1:size]...)
	copy(c.b[body-1+size:], c.b[body:body+n])
	copy(c.b[body-1:], length[:size])
}

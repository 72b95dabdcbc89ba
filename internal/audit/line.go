package audit

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
)

// A line of the journal and its bytes. The layout is for ever: segments of an older release
// stay in the journal for as long as there is room. New fields are added at the end, where a
// line without them is as it always was.

// Kind says what a line tells.
type Kind uint8

// The kinds of lines. Segments number them: add at the end only.
const (
	Operation Kind = iota + 1 // something was done, or refused
	Hold                      // a hold is over
)

// Outcomes of an operation, besides the codes of refusals.
const (
	OK     = "ok"
	Queued = "queued" // the request waits for its resource
)

// Verbs of what nobody asked for.
const (
	Grant  = "grant"  // a waiter got its lease
	Expire = "expire" // time ended something

	BeginReservation = "begin-reservation" // its time came
	FreeReservation  = "free-reservation"  // nobody claimed it, or its lease or its time ended
)

// Login is the verb of a request to be let in by a door.
const Login = "login"

// Time is the actor of what time alone does.
const Time = "time"

// A Line is one thing that the journal keeps: an operation, with who did it and what it came to; or a
// hold, with its beginning and end and how it ended.
type Line struct {
	Kind Kind

	// Index and N are its place: N counts the lines of one log entry. Both are zero for
	// what never came to the log.
	Index uint64
	N     uint32

	At        time.Time
	Namespace string
	Resource  string // or the path of a record
	ID        string // of the lease
	Foreign   string // the id that a foreign protocol gave it
	Holder    string
	Token     leasehold.Token
	Session   string
	How       leasehold.How // the way in which something ended; 0 if nothing did
	By        string        // the operator, as it calls itself
	Reason    string

	// With a Operation.
	Verb    string
	Outcome string
	Actor   string // as far as it was proven; else as it calls itself, if it does
	Address string
	Door    string

	// With a Hold.
	Since  time.Time
	Until  time.Time
	Waited time.Duration
	Busy   time.Duration // that units of a pool were used, as far as their hosts said so
	Idle   time.Duration // that they were not
	Share  leasehold.Share
}

// begin is the earliest moment that a line is about.
func (l *Line) begin() time.Time {
	if l.Kind == Hold {
		return l.Since
	}
	return l.At
}

// appendLine writes the bytes of a line.
func appendLine(b []byte, l *Line) []byte {
	b = append(b, byte(l.Kind), byte(l.How))
	b = binary.AppendUvarint(b, l.Index)
	b = binary.AppendUvarint(b, uint64(l.N))
	b = binary.AppendVarint(b, l.At.UnixNano())
	b = binary.AppendUvarint(b, uint64(l.Token))
	for _, text := range [...]string{l.Namespace, l.Resource, l.ID, l.Holder, l.Session, l.By, l.Reason} {
		b = appendText(b, text)
	}
	if l.Kind == Hold {
		b = binary.AppendVarint(b, l.Since.UnixNano())
		b = binary.AppendVarint(b, l.Until.UnixNano())
		b = binary.AppendVarint(b, int64(l.Waited))
		if l.Busy == 0 && l.Idle == 0 && l.Share.Units == 0 {
			return appendForeign(b, l)
		}
		b = binary.AppendVarint(appendText(b, l.Foreign), int64(l.Busy))
		return appendShare(binary.AppendVarint(b, int64(l.Idle)), &l.Share)
	}
	for _, text := range [...]string{l.Verb, l.Outcome, l.Actor, l.Address, l.Door} {
		b = appendText(b, text)
	}
	return appendForeign(b, l)
}

// appendForeign writes a foreign id, which few lines have: those without are as they were before
// there were any.
func appendForeign(b []byte, l *Line) []byte {
	if l.Foreign == "" {
		return b
	}
	return appendText(b, l.Foreign)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

var errMalformed = errors.New("a line of the journal is malformed")

// decodeLine reads what appendLine wrote. The line's texts are parts of s.
func decodeLine(s string, l *Line) error {
	r := reader{s: s}
	*l = Line{Kind: Kind(r.byte()), How: leasehold.How(r.byte()), Index: r.unsigned()}
	n := r.unsigned()
	l.N = uint32(n)
	l.At = r.moment()
	l.Token = leasehold.Token(r.unsigned())
	if l.Kind != Operation && l.Kind != Hold || uint64(l.N) != n {
		return errMalformed
	}
	l.Namespace, l.Resource, l.ID, l.Holder, l.Session, l.By, l.Reason = r.text(), r.text(), r.text(), r.text(),
		r.text(), r.text(), r.text()
	if l.Kind == Hold {
		l.Since, l.Until, l.Waited = r.moment(), r.moment(), time.Duration(r.signed())
	} else {
		l.Verb, l.Outcome, l.Actor, l.Address, l.Door = r.text(), r.text(), r.text(), r.text(), r.text()
	}
	if r.s != "" && !r.bad {
		l.Foreign = r.text()
		if l.Kind == Hold && r.s != "" {
			l.Busy, l.Idle = time.Duration(r.signed()), time.Duration(r.signed())
			r.bad = r.bad || l.Busy == 0 && l.Idle == 0 && r.s == ""
			if r.s != "" {
				l.Share = r.share()
			}
		} else {
			r.bad = r.bad || l.Foreign == ""
		}
	}
	if r.bad || r.s != "" {
		return errMalformed
	}
	return nil
}

// A reader takes fields from the front of a string.
type reader struct {
	s   string
	bad bool
}

func (r *reader) byte() byte {
	if r.s == "" {
		r.bad = true
		return 0
	}
	b := r.s[0]
	r.s = r.s[1:]
	return b
}

// unsigned reads a number as encoding/binary writes it, in its shortest form.
func (r *reader) unsigned() (v uint64) {
	for shift := uint(0); shift < 64; shift += 7 {
		b := r.byte()
		if shift == 63 && b > 1 || shift > 0 && b == 0 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.bad, r.s = true, ""
	return 0
}

func (r *reader) signed() int64 {
	v := r.unsigned()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) moment() time.Time { return time.Unix(0, r.signed()).UTC() }

func (r *reader) text() string {
	n := r.unsigned()
	if n > uint64(len(r.s)) {
		r.bad, r.s = true, ""
		return ""
	}
	text := r.s[:n]
	r.s = r.s[n:]
	return text
}

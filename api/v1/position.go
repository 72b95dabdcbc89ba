package v1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Position is a place in the events of a namespace: "42.1" is event 1 of revision 42, and "42"
// is the last event of that revision.
type Position struct {
	Revision uint64
	N        uint32
}

// Whole is the N of a position without one. It sorts after every event of its revision, so "42"
// means all of revision 42.
const Whole = math.MaxUint32

// ParsePosition parses "42" and "42.1".
func ParsePosition(s string) (Position, error) {
	revision, n, found := strings.Cut(s, ".")
	p := Position{N: Whole}
	var err error
	if p.Revision, err = strconv.ParseUint(revision, 10, 64); err != nil {
		return Position{}, badPosition(s)
	}
	if found {
		event, err := strconv.ParseUint(n, 10, 32)
		if err != nil {
			return Position{}, badPosition(s)
		}
		p.N = uint32(event)
	}
	return p, nil
}

func badPosition(s string) error {
	return fmt.Errorf("%s is not a position: write a revision such as 42, or a revision and an event such as 42.1",
		brief([]byte(strconv.Quote(s))))
}

// String returns the position as ParsePosition parses it.
func (p Position) String() string { return string(p.Append(nil)) }

// Append appends String to b.
func (p Position) Append(b []byte) []byte {
	b = strconv.AppendUint(b, p.Revision, 10)
	if p.N != Whole {
		b = strconv.AppendUint(append(b, '.'), uint64(p.N), 10)
	}
	return b
}

// MarshalText writes a position as String does.
func (p Position) MarshalText() ([]byte, error) { return p.Append(nil), nil }

// UnmarshalText reads a position.
func (p *Position) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePosition(string(b))
	return err
}

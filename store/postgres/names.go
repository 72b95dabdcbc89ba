package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note is what people read about a lease. It is kept as JSON in ASCII, which a database of any encoding
// accepts; its column is of type json, since jsonb refuses \u0000.
type note struct {
	Holder string      `json:"holder,omitempty"`
	Labels [][2]string `json:"labels,omitempty"`
	Reason string      `json:"reason,omitempty"`
	By     string      `json:"by,omitempty"` // who broke it, with Reason
}

func requestNote(r store.Request) note {
	n := note{Holder: r.Holder, Reason: r.Reason}
	for _, l := range r.Labels {
		n.Labels = append(n.Labels, [2]string{l.Key, l.Value})
	}
	return n
}

func (n note) labels() leasehold.Labels {
	var labels leasehold.Labels
	for _, l := range n.Labels {
		labels = append(labels, leasehold.Label{Key: l[0], Value: l[1]})
	}
	return labels
}

// encode returns the note in ASCII.
func (n note) encode() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic("a note of strings cannot be written: " + err.Error())
	}
	var b strings.Builder
	for _, c := range string(text) {
		switch {
		case c < utf8.RuneSelf:
			b.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		}
	}
	return b.String()
}

// decodeNote reads what encode wrote. What somebody else wrote there is not worth an error.
func decodeNote(text []byte) note {
	var n note
	if json.Unmarshal(text, &n) != nil {
		return note{}
	}
	return n
}

// checkName refuses a name that is too long. Any UTF-8 is allowed: names are kept as bytes.
func checkName(what, s string) error {
	if s == "" {
		return invalid("%s is missing: give 1 to %d bytes", what, leasehold.MaxName)
	}
	return checkText(what, s)
}

func checkText(what, s string) error {
	switch {
	case len(s) > leasehold.MaxName:
		return invalid("%s has %d bytes: at most %d are allowed", what, len(s), leasehold.MaxName)
	case !utf8.ValidString(s):
		return invalid("%s is not valid UTF-8", what)
	}
	return nil
}

// successor returns the first name after all that begin with a prefix; nil: there is none.
func successor(prefix string) []byte {
	b := []byte(prefix)
	for len(b) > 0 {
		if b[len(b)-1] < 0xff {
			b[len(b)-1]++
			return b
		}
		b = b[:len(b)-1]
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// split returns the names and the ids of leases.
func split(leases []store.Ref) (names, ids [][]byte, err error) {
	for _, l := range leases {
		if err := first(checkName("resource", l.Resource), checkName("lease id", l.ID)); err != nil {
			return nil, nil, err
		}
		names, ids = append(names, []byte(l.Resource)), append(ids, []byte(l.ID))
	}
	return names, ids, nil
}

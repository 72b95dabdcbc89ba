package native

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// brief keeps what a caller sent short enough, and clean enough, to tell it back.
func brief(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// checkPath says what is wrong with the path of a resource.
func checkPath(field, s string) error {
	if err := checkName(field, s); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return invalid("%s %s has the segment %q: between slashes there is at least one character, and neither . nor ..", field, brief(s), segment)
		}
	}
	return nil
}

// checkName says what is wrong with a name that has to be there.
func checkName(field, s string) error {
	if s == "" {
		return invalid("%s is missing: give it 1 to %d bytes", field, leasehold.MaxName)
	}
	return checkText(field, s)
}

// checkText says what is wrong with a text that may be empty.
func checkText(field, s string) error {
	if len(s) > leasehold.MaxName {
		return invalid("%s has %d bytes: at most %d are allowed", field, len(s), leasehold.MaxName)
	}
	return checkCharacters(field, s)
}

func checkCharacters(field, s string) error {
	if plain(s) {
		return nil
	}
	if !utf8.ValidString(s) {
		return invalid("%s %s is not valid UTF-8", field, brief(s))
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return invalid("%s %s has the control character %U at byte %d: none are allowed", field, brief(s), r, i)
	}
	return nil
}

// plain tells whether a text is printable ASCII, as nearly all are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// readQuery reads the query. A parameter that means nothing here is an error: a
// misspelt namespace must not become the default one.
func (c *call) readQuery(r *route) error {
	c.namespace = leasehold.DefaultNamespace
	if c.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return invalid("the query can not be read: %v", err)
	}
	for name, values := range query {
		if known := r.known(); !slices.Contains(known, name) {
			return invalid("the query has %s, which is unknown here; known are: %s", brief(name), strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return invalid("%s stands %d times in the query: give it once", name, len(values))
		}
	}
	c.query = query
	if query.Has("namespace") {
		c.namespace = query.Get("namespace")
		return checkName("namespace", c.namespace)
	}
	return nil
}

// known is what a query may have.
func (r *route) known() []string {
	if r.global {
		return r.params
	}
	return append([]string{"namespace"}, r.params...)
}

// number reads a whole number from 1 to most.
func (c *call) number(name string, otherwise, most int) (int, error) {
	s := c.query.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, invalid("%s %s is not a number from 1 to %d", name, brief(s), most)
	}
	return n, nil
}

// flag reads yes or no. A parameter without a value is a yes.
func (c *call) flag(name string) (bool, error) {
	if !c.query.Has(name) {
		return false, nil
	}
	switch s := c.query.Get(name); s {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, invalid("%s %s is neither true nor false", name, brief(s))
	}
}

// prefix reads the beginning of paths, which need not be a path.
func (c *call) prefix() (string, error) {
	prefix := c.query.Get("prefix")
	return prefix, checkText("prefix", prefix)
}

// A cursor is a path in base64: paths that came in through another door may hold
// any bytes, and JSON can not.
func cursor(path string) string {
	if path == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(path))
}

func (c *call) after() (string, error) {
	s := c.query.Get("after")
	path, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(path) > leasehold.MaxName {
		return "", invalid("after %s is not what \"next\" of a page said: leave it out to begin again", brief(s))
	}
	return string(path), nil
}

// position reads a place in the events; the zero one if there is none.
func position(name, s string) (v1.Position, error) {
	if s == "" {
		return v1.Position{}, nil
	}
	p, err := v1.ParsePosition(s)
	if err != nil {
		return v1.Position{}, invalid("%s: %v", name, err)
	}
	return p, nil
}

// readOnce reads the headers by which a request that is sent twice is done once.
func (c *call) readOnce() error {
	keys, sessions := c.r.Header[v1.KeyHeader], c.r.Header[v1.SessionHeader]
	switch {
	case len(keys) == 0 && len(sessions) == 0:
		return nil
	case len(keys) > 1 || len(sessions) > 1:
		return invalid("headers %s and %s may stand once each", v1.KeyHeader, v1.SessionHeader)
	case len(keys) == 0:
		return invalid("header %s counts requests by header %s, which is missing", v1.SessionHeader, v1.KeyHeader)
	case len(sessions) == 0:
		c.once.Key = keys[0]
		return checkName("header "+v1.KeyHeader, keys[0])
	}
	number, err := strconv.ParseUint(keys[0], 10, 64)
	if err != nil || number == 0 {
		return invalid("header %s is %s: with header %s it is a number, counted up from 1", v1.KeyHeader, brief(keys[0]), v1.SessionHeader)
	}
	c.once = core.Request{Session: sessions[0], Sequence: number}
	return checkName("header "+v1.SessionHeader, sessions[0])
}

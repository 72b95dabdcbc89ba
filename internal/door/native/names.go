package native

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// Short names for what nearly every file here needs.

func invalid(format string, args ...any) error { return door.Invalid(format, args...) }
func brief(s string) string                    { return door.Brief(s) }
func firstError(errs ...error) error           { return door.First(errs...) }
func checkPath(field, s string) error          { return translate.Path(field, s) }
func checkName(field, s string) error          { return translate.Name(field, s) }
func checkText(field, s string) error          { return translate.Text(field, s) }

// number reads a whole number from 1 to most.
func (c *call) number(name string, otherwise, most int) (int, error) {
	n, err := c.query.Number(name, uint64(otherwise), uint64(most))
	return int(n), err
}

// flag reads yes or no. A parameter without a value is a yes.
func (c *call) flag(name string) (bool, error) { return c.query.Flag(name) }

// prefix reads the beginning of paths, which need not be a path.
func (c *call) prefix() (string, error) {
	prefix := c.query.Get("prefix")
	return prefix, checkText("prefix", prefix)
}

// A part is what of a list is asked for: at most limit of what begins with a prefix, after one.
type part struct {
	prefix, after string
	limit         int
}

func (c *call) part() (p part, err error) {
	var badPrefix, badAfter, badLimit error
	p.prefix, badPrefix = c.prefix()
	p.after, badAfter = c.after()
	p.limit, badLimit = c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	return p, firstError(badPrefix, badAfter, badLimit)
}

// pageOf returns a part of a short list, by name.
func pageOf[T any](all []T, p part, name func(T) string) v1.List[T] {
	page := v1.List[T]{Items: []T{}}
	for _, one := range all {
		if strings.HasPrefix(name(one), p.prefix) && name(one) > p.after {
			page.Items = append(page.Items, one)
		}
	}
	slices.SortFunc(page.Items, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	if len(page.Items) > p.limit {
		page.Items = page.Items[:p.limit]
		page.Next = cursor(name(page.Items[p.limit-1]))
	}
	return page
}

// A cursor is a path in base64: paths that came in through another door may hold
// any bytes, and JSON cannot.
func cursor(path string) string {
	if path == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(path))
}

// maxCursor is how many bytes a cursor has: two names, of a resource and of what is on it, and what is beside them if
// they may not be shown.
const maxCursor = 2*leasehold.MaxName + 128

func (c *call) after() (string, error) {
	s := c.query.Get("after")
	path, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(path) > maxCursor {
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

// readOnce reads the names by which a request that is sent twice is done once.
func (c *call) readOnce(keys, sessions []string) error {
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
		return invalid("header %s is %s: with header %s it is a number, counted up from 1", v1.KeyHeader,
			brief(keys[0]), v1.SessionHeader)
	}
	c.once = core.Request{Session: sessions[0], Sequence: number}
	return checkName("header "+v1.SessionHeader, sessions[0])
}

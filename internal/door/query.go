package door

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Query is the query string of a request, with each name once, or as often as it may stand.
type Query struct{ url.Values }

// ReadQuery reads a query. A name that means nothing is an error: a misspelt namespace must
// not become the default one. A known name that ends with + may stand several times.
func ReadQuery(raw string, known ...string) (Query, error) {
	if raw == "" {
		return Query{}, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return Query{}, Invalid("the query cannot be read: %v", err)
	}
	for name, given := range values {
		often := slices.Contains(known, name+"+")
		if !often && (!slices.Contains(known, name) || strings.HasSuffix(name, "+")) {
			return Query{}, Invalid("the query has %s, which is unknown here; known are: %s",
				Brief(name), strings.ReplaceAll(strings.Join(known, ", "), "+", ""))
		}
		if len(given) > 1 && !often {
			return Query{}, Invalid("%s stands %d times in the query: give it once", name, len(given))
		}
	}
	return Query{values}, nil
}

// Number returns a whole number from 1 to most.
func (q Query) Number(name string, otherwise, most uint64) (uint64, error) {
	s := q.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, Invalid("%s %s is not a number from 1 to %d", name, Brief(s), most)
	}
	return n, nil
}

// Flag returns yes or no. A name without a value is a yes.
func (q Query) Flag(name string) (bool, error) {
	if !q.Has(name) {
		return false, nil
	}
	switch s := q.Get(name); s {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, Invalid("%s %s is neither true nor false", name, Brief(s))
	}
}

// Duration returns a time such as 10m, or a number of seconds; 0 if there is none.
func (q Query) Duration(name string, most time.Duration) (time.Duration, error) {
	s := q.Get(name)
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if seconds, bad := strconv.ParseUint(s, 10, 31); bad == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > most {
		return 0, Invalid("%s %s is not a time from 0 to %v, such as 10m", name, Brief(s), most)
	}
	return d, nil
}

// CheckText says what is wrong with a text that may be empty: UTF-8 without control characters,
// of at most so many bytes.
func CheckText(field, s string, most int) error {
	if len(s) > most {
		return Invalid("%s has %d bytes: at most %d are allowed", field, len(s), most)
	}
	if plain(s) {
		return nil
	}
	if !utf8.ValidString(s) {
		return Invalid("%s %s is not valid UTF-8", field, Brief(s))
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return Invalid("%s %s has the control character %U at byte %d: none are allowed", field, Brief(s), r, i)
	}
	return nil
}

// CheckName says what is wrong with a text that has to be there.
func CheckName(field, s string, most int) error {
	if s == "" {
		return Invalid("%s is missing: give it 1 to %d bytes", field, most)
	}
	return CheckText(field, s, most)
}

// CheckSegments says what is wrong with the segments of a path.
func CheckSegments(field, path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return Invalid("%s %s has the segment %q: between slashes there is at least one character, and "+
				"neither . nor ..", field, Brief(path), segment)
		}
	}
	return nil
}

// plain reports whether a text is printable ASCII, as nearly all are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

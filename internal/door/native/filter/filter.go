// Package filter reads which leases a list shows.
package filter

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// Params are what picks leases in a list. In each value but a state's, * stands for any
// text.
const Params = "holder session door state label+"

// maxLabelFilters is how many labels one list may ask for, and maxStars how many stars a pattern has.
// A list looks at thousands of leases while everybody waits, and holders can be hostile: so nothing
// of a lease is looked at twice, and in few parts.
const (
	maxLabelFilters = 16
	maxStars        = 16
)

// Read reads which leases a list shows.
func Read(query door.Query) (f core.Filter, err error) {
	patterns := map[string]*core.Pattern{"holder": &f.Holder, "session": &f.Session, "door": &f.Door}
	for name, pattern := range patterns {
		if !query.Has(name) {
			continue
		}
		text := query.Get(name)
		if err := door.First(door.CheckName(name, text, leasehold.MaxName), checkStars(name, text)); err != nil {
			return f, err
		}
		*pattern = core.NewPattern(text)
	}
	if query.Has("state") {
		if f.State, err = stateOf(query.Get("state")); err != nil {
			return f, err
		}
	}
	given := query.Values["label"]
	if len(given) > maxLabelFilters {
		return f, door.Invalid("label is given %d times: at most %d are allowed", len(given), maxLabelFilters)
	}
	for _, text := range given {
		label, err := labelPattern(text)
		if err != nil {
			return f, err
		}
		if slices.ContainsFunc(f.Labels, func(l core.LabelPattern) bool { return l.Key == label.Key }) {
			return f, door.Invalid("label %s is given twice: give each label once", door.Brief(label.Key))
		}
		f.Labels = append(f.Labels, label)
	}
	return f, nil
}

func stateOf(name string) (leasehold.State, error) {
	var known []string
	for s := leasehold.Available; s <= leasehold.Expired; s++ {
		if s.String() == name {
			return s, nil
		}
		known = append(known, s.String())
	}
	return 0, door.Invalid("unknown state %s; known states: %s", door.Brief(name), strings.Join(known, ", "))
}

// labelPattern reads a label as it is asked for: key=value, or a key alone for any value.
func labelPattern(text string) (core.LabelPattern, error) {
	key, value, given := strings.Cut(text, "=")
	if !given {
		value = "*"
	}
	if key == "" {
		return core.LabelPattern{}, door.Invalid("label %s has no key: write key=value, or key alone for any value",
			door.Brief(text))
	}
	err := door.First(door.CheckText("the key of a label", key, leasehold.MaxName),
		door.CheckText("the value of a label", value, leasehold.MaxName),
		checkStars("the value of a label", value))
	return core.LabelPattern{Key: key, Value: core.NewPattern(value)}, err
}

func checkStars(what, pattern string) error {
	if n := strings.Count(pattern, "*"); n > maxStars {
		return door.Invalid("%s has %d stars: at most %d are allowed", what, n, maxStars)
	}
	return nil
}

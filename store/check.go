package store

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// Check returns an error if a request needs a power that a store lacks, has a TTL that it does not
// allow, or breaks a limit that is the same everywhere.
func Check(s Store, r Request) error {
	if err := CheckPowers(s, r); err != nil {
		return err
	}
	for _, name := range []struct{ what, text string }{
		{"resource", r.Resource}, {"id", r.ID}, {"holder", r.Holder}, {"reason", r.Reason},
	} {
		if len(name.text) > leasehold.MaxName || !utf8.ValidString(name.text) {
			return invalid("the %s is not UTF-8 of at most %d bytes", name.what, leasehold.MaxName)
		}
	}
	switch {
	case r.Resource == "" || r.ID == "":
		return invalid("the resource and the id must not be empty")
	case len(r.Value) > leasehold.MaxValue:
		return invalid("the value has %d bytes: at most %d are allowed", len(r.Value), leasehold.MaxValue)
	case labelBytes(r.Labels) > leasehold.MaxLabels:
		return invalid("the labels have %d bytes: at most %d are allowed", labelBytes(r.Labels), leasehold.MaxLabels)
	case slices.ContainsFunc(r.Labels, notText):
		return invalid("a label is not UTF-8")
	case r.Floor >= leasehold.MaxToken:
		return invalid("the floor %d leaves no larger token", r.Floor)
	}
	return s.Features().CheckTTL(r.TTL)
}

// CheckPowers returns an error if a request needs a power that a store lacks.
func CheckPowers(s Store, r Request) error {
	shares := r.Shared || r.Slots != 0 || r.Capacity > 1
	for _, item := range r.Also {
		shares = shares || item.Shared || item.Slots != 0 || item.Capacity > 1
	}
	for _, need := range []struct {
		power Power
		is    bool
	}{
		{SessionPower, r.Session != ""},
		{Selection, r.Select != nil}, // before slots: it needs both, and says what was asked for
		{Reservations, r.Reservation != ""},
		{Slots, shares}, {Several, len(r.Also) > 0}, {Grace, r.Grace != 0},
		{HoldLimit, r.HoldLimit != 0}, {Priority, r.Priority != 0}, {ValueInLease, len(r.Value) > 0},
	} {
		if !need.is {
			continue
		}
		if err := Require(s, need.power); err != nil {
			return err
		}
	}
	return nil
}

func notText(l leasehold.Label) bool { return !utf8.ValidString(l.Key) || !utf8.ValidString(l.Value) }

func labelBytes(labels leasehold.Labels) (n int) {
	for _, l := range labels {
		n += len(l.Key) + len(l.Value)
	}
	return n
}

// LabelMap returns labels by their keys; nil if there are none.
func LabelMap(labels leasehold.Labels) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Key] = l.Value
	}
	return m
}

// LabelsOf returns labels in the order of their keys.
func LabelsOf(m map[string]string) (labels leasehold.Labels) {
	if len(m) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		labels = append(labels, leasehold.Label{Key: key, Value: m[key]})
	}
	return labels
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

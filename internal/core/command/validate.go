package command

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// What is wrong with a command whatever the state: names that are missing or too long, numbers
// out of range. Texts say what is allowed, so that a caller can correct the request without
// looking it up. They are part of remembered answers; replicas of all versions must write the
// same ones.

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// name checks a text that must not be empty.
func name(what, s string) error {
	if s == "" {
		return invalid("%s is missing: give 1 to %d bytes", what, leasehold.MaxName)
	}
	return text(what, s)
}

// text checks a text that may be empty. Any bytes are allowed: a name is compared and never
// interpreted.
func text(what, s string) error {
	if len(s) > leasehold.MaxName {
		return invalid("%s has %d bytes: at most %d are allowed", what, len(s), leasehold.MaxName)
	}
	return nil
}

// noPattern refuses a path of an area, where overlap excludes, for what has another order or meaning.
func noPattern(path, why string) error {
	if !pattern.In(path) {
		return nil
	}
	return invalid("%s is a path in an area: %s", path, why)
}

func foreign(id string) error {
	if len(id) > leasehold.MaxForeign {
		return invalid("foreign id has %d bytes: at most %d are allowed", len(id), leasehold.MaxForeign)
	}
	return nil
}

func note(text *string) error {
	if text != nil && len(*text) > leasehold.MaxNote {
		return invalid("note has %d bytes: at most %d are allowed", len(*text), leasehold.MaxNote)
	}
	return nil
}

func ttl(d time.Duration) error {
	if d < leasehold.MinTTL || d > leasehold.MaxTTL {
		return invalid("ttl %v is out of range: %v to %v (30 days) are allowed", d, leasehold.MinTTL, leasehold.MaxTTL)
	}
	return nil
}

func optionalTTL(d time.Duration) error {
	if d == 0 {
		return nil
	}
	return ttl(d)
}

func within(what string, d, most time.Duration) error {
	if d < 0 || d > most {
		return invalid("%s %v is out of range: 0 to %v are allowed", what, d, most)
	}
	return nil
}

func priority(p int) error {
	if p < -leasehold.MaxPriority || p > leasehold.MaxPriority {
		return invalid("priority %d is out of range: %d to %d are allowed", p, -leasehold.MaxPriority,
			leasehold.MaxPriority)
	}
	return nil
}

// labels checks that keys are sorted and unique, so that equal labels are written equally.
func labels(ls leasehold.Labels) error {
	size := 0
	for i, l := range ls {
		if l.Key == "" {
			return invalid("a label has no key: give each one of its own")
		}
		if i > 0 && ls[i-1].Key >= l.Key {
			return invalid("label %q stands twice, or labels are not sorted by key", l.Key)
		}
		size += len(l.Key) + len(l.Value)
	}
	if size > leasehold.MaxLabels {
		return invalid("labels have %d bytes: at most %d are allowed", size, leasehold.MaxLabels)
	}
	return nil
}

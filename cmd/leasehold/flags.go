package main

import (
	"errors"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A span is a flag that takes a duration, days included.
type span struct {
	value time.Duration
	given bool
}

// spanOf is a flag with a default.
func spanOf(d time.Duration) span { return span{d, true} }

func (s *span) Type() string { return "duration" }

func (s *span) String() string {
	if !s.given {
		return ""
	}
	return v1.Duration(s.value).String()
}

func (s *span) Set(text string) error {
	d, err := v1.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("write a duration such as 500ms, 30s, 5m, 2h or 1d")
	case d < 0:
		return errors.New("a duration is not less than 0s")
	}
	s.value, s.given = d, true
	return nil
}

// A ttl is a flag that takes a duration, or none.
type ttl struct{ v1.TTL }

func (t *ttl) Type() string { return "duration|none|auto" }

func (t *ttl) String() string {
	switch {
	case t.None:
		return "none"
	case t.Auto:
		return "auto"
	case t.Duration == 0:
		return ""
	}
	return t.Duration.String()
}

func (t *ttl) Set(text string) error {
	switch text {
	case "none":
		t.TTL = v1.TTL{None: true}
		return nil
	case "auto":
		t.TTL = v1.TTL{Auto: true}
		return nil
	}
	d, err := v1.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("write a duration such as 500ms, 30s, 5m, 2h or 1d, or none, or auto")
	}
	t.TTL = v1.TTL{Duration: v1.Duration(d)}
	return nil
}

// labels is a flag that takes key=value, many times.
type labels map[string]string

func (l labels) Type() string   { return "key=value" }
func (l labels) String() string { return labelList(l) }

func (l labels) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return errors.New("write it as key=value")
	}
	if _, twice := l[key]; twice {
		return errors.New("this key was given already")
	}
	l[key] = value
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Span is a flag that takes a duration, days included.
type Span struct {
	Value time.Duration
	Given bool
}

// SpanOf is a flag with a default.
func SpanOf(d time.Duration) Span { return Span{d, true} }

func (s *Span) Type() string { return "duration" }

func (s *Span) String() string {
	if !s.Given {
		return ""
	}
	if days := s.Value / (24 * time.Hour); days > 0 && days*24*time.Hour == s.Value {
		return fmt.Sprintf("%dd", days)
	}
	return v1.Duration(s.Value).String()
}

func (s *Span) Set(text string) error {
	d, err := v1.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("write a duration such as 500ms, 30s, 5m, 2h or 1d")
	case d < 0:
		return errors.New("a duration cannot be negative")
	}
	s.Value, s.Given = d, true
	return nil
}

// A TTL is a flag that takes a duration, or none.
type TTL struct{ v1.TTL }

func (t *TTL) Type() string { return "duration|none|auto|unattended" }

func (t *TTL) String() string {
	switch {
	case t.None:
		return "none"
	case t.Word() != "":
		return t.Word()
	case t.Duration == 0:
		return ""
	}
	return t.Duration.String()
}

func (t *TTL) Set(text string) error {
	switch text {
	case "none":
		t.TTL = v1.TTL{None: true}
		return nil
	case "auto", "unattended":
		t.TTL = v1.TTL{Auto: text == "auto", Unattended: text == "unattended"}
		return nil
	}
	d, err := v1.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("write a duration such as 500ms, 30s, 5m, 2h or 1d, or none, auto or unattended")
	}
	t.TTL = v1.TTL{Duration: v1.Duration(d)}
	return nil
}

// Slots is a flag that takes a number of slots, or all.
type Slots struct {
	N     int // 0: all, if it was given
	Given bool
}

func (s *Slots) Type() string { return "number|all" }

func (s *Slots) String() string {
	switch {
	case !s.Given:
		return ""
	case s.N == 0:
		return "all"
	}
	return strconv.Itoa(s.N)
}

func (s *Slots) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case text == "all":
		n = 0
	case err != nil || n < 1:
		return errors.New("write a number, 1 or more, or all")
	}
	*s = Slots{n, true}
	return nil
}

// Labels is a flag that takes key=value, many times.
type Labels map[string]string

func (l Labels) Type() string   { return "key=value" }
func (l Labels) String() string { return LabelList(l) }

func (l Labels) Set(text string) error {
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

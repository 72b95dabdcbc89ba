package v1

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Durations and moments are text in JSON, as people write them ("30s", RFC 3339), so that requests
// can be typed by hand and logs can be read.

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// A Time is written as RFC 3339 with milliseconds, in UTC.
type Time struct{ time.Time }

// MarshalJSON writes RFC 3339 with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeFormat) + `"`), nil
}

// UnmarshalJSON reads any RFC 3339 time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s, ok := text(b)
	if !ok {
		return fmt.Errorf("%s is not a time: write it in quotes, as RFC 3339", b)
	}
	var err error
	t.Time, err = time.Parse(time.RFC3339Nano, s)
	return err
}

// A Duration is written with units: "30s", "1h30m", "2d".
type Duration time.Duration

// MarshalJSON writes a duration with units.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a duration with units. null changes nothing.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s, ok := text(b)
	if !ok {
		return fmt.Errorf(`%s is not a duration: write a string with a unit, such as "30s"`, brief(b))
	}
	v, err := ParseDuration(s)
	if err == nil {
		*d = Duration(v)
	}
	return err
}

// String returns the duration without parts that are zero: "1h" and not "1h0m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ParseDuration parses what time.ParseDuration does, and days: "2d", "1d12h".
func ParseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, badDuration(s)
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, badDuration(s)
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more > math.MaxInt64-d {
		return 0, badDuration(s)
	}
	return d + more, nil
}

func badDuration(s string) error {
	return fmt.Errorf("%s is not a duration: write it as 500ms, 30s, 5m, 2h or 1d", brief([]byte(strconv.Quote(s))))
}

// A TTL is a Duration above zero, explicitly none (null), or learned: "auto" for a lease that is
// renewed, "unattended" for one that is not. The zero TTL means that none was given.
type TTL struct {
	Duration   Duration
	None       bool
	Auto       bool
	Unattended bool
}

// Word returns "auto" or "unattended"; empty for other TTLs.
func (t TTL) Word() string {
	switch {
	case t.Auto:
		return "auto"
	case t.Unattended:
		return "unattended"
	}
	return ""
}

// MarshalJSON writes null for none.
func (t TTL) MarshalJSON() ([]byte, error) {
	if word := t.Word(); word != "" {
		return json.Marshal(word)
	}
	if t.None {
		return []byte("null"), nil
	}
	return t.Duration.MarshalJSON()
}

// UnmarshalJSON reads null as none.
func (t *TTL) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = TTL{None: true}
		return nil
	}
	if s, _ := text(b); s == "auto" || s == "unattended" {
		*t = TTL{Auto: s == "auto", Unattended: s != "auto"}
		return nil
	}
	var d Duration
	if err := d.UnmarshalJSON(b); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("%v is too short: write a duration above zero, or null for none", d)
	}
	*t = TTL{Duration: d}
	return nil
}

func text(b []byte) (string, bool) {
	var s string
	err := json.Unmarshal(b, &s)
	return s, err == nil
}

// brief shortens what a caller sent, to quote it in an error.
func brief(b []byte) string {
	const most = 64
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "…"
}

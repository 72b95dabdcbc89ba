package v1

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON writes RFC 3339 with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeFormat) + `"`), nil
}

// UnmarshalJSON reads any RFC 3339 time.
func (t *Time) UnmarshalJSON(b []byte) error {
	s, err := text(b)
	if err != nil {
		return err
	}
	t.Time, err = time.Parse(time.RFC3339Nano, s)
	return err
}

// MarshalJSON writes a duration as people write it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a duration as people write it.
func (d *Duration) UnmarshalJSON(b []byte) error {
	s, err := text(b)
	if err != nil {
		return err
	}
	v, err := ParseDuration(s)
	*d = Duration(v)
	return err
}

// String leaves out the parts that are zero: "1h" and not "1h0m0s".
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

// MarshalJSON writes null for none.
func (t TTL) MarshalJSON() ([]byte, error) {
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
	t.None = false
	return t.Duration.UnmarshalJSON(b)
}

// ParseDuration reads what time.ParseDuration does, and days: "2d", "1d12h".
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
	if err != nil || more < 0 {
		return 0, badDuration(s)
	}
	return d + more, nil
}

func badDuration(s string) error {
	return fmt.Errorf("%q is not a duration: write it as 500ms, 30s, 5m, 2h or 1d", s)
}

func text(b []byte) (string, error) {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%s is not a string: write it in quotes", b)
	}
	return s, nil
}

package v1_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour,
		"0s": 0, "0": 0, "-5s": -5 * time.Second, "0d": 0, "1d0s": 24 * time.Hour, "1.5h": 90 * time.Minute,
	} {
		if got, err := v1.ParseDuration(s); err != nil || got != want {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "30", "s", "d", "-1d", "1d-2h", "1.5d", "1d2d", "5 minutes", "auto", "99999999999999999999s", "65536d", "65535d2562047h", "1dx"} {
		if got, err := v1.ParseDuration(s); err == nil {
			t.Errorf("%q is %v", s, got)
		} else if !strings.Contains(err.Error(), "write it as") {
			t.Errorf("%q: the error does not help: %v", s, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"30s", "2d", "1d12h", "65535d2562047h", "-1d", "d", "1dd", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := v1.ParseDuration(s)
		if err != nil {
			return
		}
		if strings.Contains(s, "d") && d < 0 {
			t.Errorf("%q is %v", s, d)
		}
		// What it reads it writes, and reads as the same again.
		if again, err := v1.ParseDuration(v1.Duration(d).String()); err != nil || again != d {
			t.Errorf("%q is %v, which is read as %v, %v", s, d, again, err)
		}
	})
}

func TestTTL(t *testing.T) {
	type request struct {
		TTL v1.TTL `json:"ttl,omitzero"`
	}
	for text, want := range map[string]v1.TTL{
		`{}`: {}, `{"ttl":null}`: {None: true}, `{"ttl":"auto"}`: {Auto: true}, `{"ttl":"30s"}`: {Duration: v1.Duration(30 * time.Second)}, `{"ttl":"1d"}`: {Duration: v1.Duration(24 * time.Hour)},
	} {
		var got request
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.TTL != want {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
		again, err := json.Marshal(got)
		if err != nil || json.Unmarshal(again, &got) != nil || got.TTL != want {
			t.Errorf("%s is written %s, %v", text, again, err)
		}
	}
	for text, want := range map[string]string{
		`{"ttl":30}`: "with a unit", `{"ttl":"0s"}`: "above zero", `{"ttl":"-1s"}`: "above zero", `{"ttl":"x"}`: "write it as",
		`{"ttl":[]}`: "with a unit", `{"ttl":true}`: "with a unit",
	} {
		var got request
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 5, 30, 0, 123456789, time.FixedZone("", 3600))
	b, err := json.Marshal(v1.Time{Time: at})
	if err != nil || string(b) != `"2026-03-01T04:30:00.123Z"` {
		t.Errorf("written as %s, %v", b, err)
	}
	var got v1.Time
	if err := json.Unmarshal(b, &got); err != nil || !got.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("read as %v, %v", got, err)
	}
	for _, s := range []string{`7`, `"yesterday"`, `{}`} {
		if err := json.Unmarshal([]byte(s), &got); err == nil {
			t.Errorf("%s is a time: %v", s, got)
		}
	}
}

func TestPosition(t *testing.T) {
	for s, want := range map[string]v1.Position{
		"0": {N: v1.Whole}, "42": {Revision: 42, N: v1.Whole}, "42.0": {Revision: 42}, "42.1": {Revision: 42, N: 1}, "18446744073709551615.7": {Revision: math.MaxUint64, N: 7},
	} {
		got, err := v1.ParsePosition(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("%q is %+v (%v), %v", s, got, got, err)
		}
	}
}

func FuzzPosition(f *testing.F) {
	for _, s := range []string{"0", "42", "42.1", "42.", ".1", "-1", "+1", "1.1.1", "1e3", "0x1", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := v1.ParsePosition(s)
		if err != nil {
			return
		}
		if again, err := v1.ParsePosition(p.String()); err != nil || again != p {
			t.Errorf("%q is %+v, which is read as %+v, %v", s, p, again, err)
		}
	})
}

package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

func TestDays(t *testing.T) {
	for text, want := range map[string]string{
		"day": "day", "Daily": "day", "weekdays": "weekdays", "weekend": "weekends", "mon,tue,wed,thu,fri": "weekdays",
		"fri, monday": "mon,fri", "sun": "sun", "sun,sat": "weekends", "TUE": "tue",
	} {
		if days, err := ParseDays(text); err != nil || DaysText(days) != want {
			t.Errorf("%q is %s (%v), want %s", text, DaysText(days), err, want)
		}
	}
	for _, text := range []string{"", "mon,", "someday", "mo", "2", "mon-fri"} {
		if _, err := ParseDays(text); err == nil || !strings.Contains(err.Error(), "allowed are day, weekdays") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseMoment(t *testing.T) {
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 18, 13, 30, 20, 0, berlin)
	spring, autumn := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin), time.Date(2026, 10, 24, 12, 0, 0, 0, berlin)
	for _, test := range []struct {
		text string
		now  time.Time
		want string // in UTC
	}{
		{"14:00", now, "2026-11-18T13:00:00Z"},
		{"13:30", now, "2026-11-18T12:30:00Z"}, // now, as the clock shows it
		{"13:29", now, "2026-11-19T12:29:00Z"},
		{"9:05", now, "2026-11-19T08:05:00Z"},
		{"14:00:30", now, "2026-11-18T13:00:30Z"},
		{" tomorrow  14:00 ", now, "2026-11-19T13:00:00Z"},
		{"today 08:00", now, "2026-11-18T07:00:00Z"}, // past: who reserves is told
		{"2026-11-20 14:00", now, "2026-11-20T13:00:00Z"},
		{"2026-07-01 14:00", now, "2026-07-01T12:00:00Z"},
		{"2026-11-20T14:00:00+05:30", now, "2026-11-20T08:30:00Z"},
		{"2026-11-20T14:00:00Z", now, "2026-11-20T14:00:00Z"},
		{"tomorrow 02:30", spring, "2026-03-29T01:30:00Z"}, // there is no 02:30: it is 03:30
		{"02:30", spring, "2026-03-29T01:30:00Z"},
		{"tomorrow 02:30", autumn, "2026-10-25T00:30:00Z"}, // the first of two
		{"14:00", autumn.Add(12 * time.Hour), "2026-10-25T13:00:00Z"},
	} {
		got, err := ParseMoment(test.text, test.now)
		if err != nil || got.UTC().Format(time.RFC3339) != test.want {
			t.Errorf("%q is %s (%v), want %s", test.text, got.UTC().Format(time.RFC3339), err, test.want)
		}
	}
	for _, text := range []string{"", "2pm", "24:00", "14", "yesterday 14:00", "2026-02-30 14:00", "14:00:00.5", "20.11.2026 14:00", "9999-01-01 00:00"} {
		if _, err := ParseMoment(text, now); err == nil || !strings.Contains(err.Error(), "allowed are 14:00, tomorrow 14:00") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is read can be written and read again.
func FuzzDays(f *testing.F) {
	for _, seed := range []string{"day", "weekdays", "weekends", "mon,wed", "Sunday", "mon,,tue", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		days, err := ParseDays(text)
		if err != nil {
			return
		}
		if again, err := ParseDays(DaysText(days)); err != nil || again != days || days == 0 || days > leasehold.AllDays {
			t.Errorf("%q is %b, and written again %b (%v)", text, days, again, err)
		}
	})
}

func FuzzClock(f *testing.F) {
	for _, seed := range []string{"14:00", "00:00:01", "23:59:59", "9:05", "24:00", "14:00.5", "-1:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseClock(text)
		if err != nil {
			return
		}
		if again, err := ParseClock(ClockText(at)); err != nil || again != at || at < 0 || at >= 24*time.Hour {
			t.Errorf("%q is %v, and written again %v (%v)", text, at, again, err)
		}
	})
}

// A moment without a day is never past, and within two days; with one it is on that day, but for an hour that clocks
// leave out.
func FuzzMoment(f *testing.F) {
	for _, seed := range []string{"14:00", "tomorrow 02:30", "today 14:00", "2026-11-20 14:00", "2026-11-20T14:00:00Z", " 1:2", "2026-11-20  14:00"} {
		f.Add(seed, int64(1774656000))
	}
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%4e9, 0).In(berlin)
		at, err := ParseMoment(text, now)
		if err != nil || strings.Contains(strings.TrimSpace(text), " ") || strings.Contains(text, "-") {
			return
		}
		if at.Before(now.Add(-time.Minute)) || at.After(now.Add(49*time.Hour)) {
			t.Errorf("%q at %v is %v", text, now, at)
		}
	})
}

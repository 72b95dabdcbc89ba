package run

import (
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	const day = 24 * time.Hour
	two := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		since  time.Duration
		period time.Duration
		is     bool
	}{
		{"at the same moment", 0, day, false},
		{"a second later, on the second machine", time.Second, day, false},
		{"before the window ends", day - 72*time.Minute - time.Second, day, false},
		{"a cron that is 72 minutes early", day - 72*time.Minute, day, true},
		{"a day later", day, day, true},
		{"weeks later", 30 * day, day, true},
		{"another period", time.Hour, time.Hour, true},
		{"a clock that is a little behind", -time.Second, day, false},
		{"a clock that is behind by less than a period", -day + time.Second, day, false},
		{"a record from the future", -day, day, true},
		{"a record from a far future", -1000 * day, day, true},
		{"the shortest period", 1, 1, true},
		{"the longest period", 100 * day, 1<<63 - 1, false},
	} {
		next, is := due(two, two.Add(c.since), c.period)
		if is != c.is {
			t.Errorf("%s: due is %v", c.name, is)
		}
		if !is && !next.After(two.Add(c.since)) {
			t.Errorf("%s: it is not due, and was at %v", c.name, next)
		}
	}
}

// A cron that drifts by some minutes every night skips none.
func TestDueWithDrift(t *testing.T) {
	const day = 24 * time.Hour
	last := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for night := range 365 {
		at := last.Add(day + []time.Duration{-5, 3, -40, 38, 0}[night%5]*time.Minute)
		if _, is := due(last, at, day); !is {
			t.Fatalf("night %d is skipped: %v after %v", night, at, last)
		}
		if next, is := due(at, at.Add(time.Hour), day); is {
			t.Fatalf("night %d has two: again at %v", night, next)
		}
		last = at
	}
}

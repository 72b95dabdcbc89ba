// Package calendar knows time zones: it makes moments of the rules by which reservations recur. The core does not,
// since servers with different zone files would come to different states.
package calendar

import (
	"fmt"
	"time"
	_ "time/tzdata" // a server in a bare container knows zones, too

	"github.com/leasehold/leasehold"
)

// Zone returns the time zone with a name of the tz database.
func Zone(name string) (*time.Location, error) {
	// Both names of the machine's own zone would mean something else on another server.
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q is no time zone: use a name such as Europe/Berlin, or UTC", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q: use a name such as Europe/Berlin, or UTC", name)
	}
	return zone, nil
}

// Starts returns the starts of a rule from one moment on and before another, in order, at most most of them.
func Starts(rule *leasehold.Rule, from, to time.Time, most int) ([]time.Time, error) {
	zone, err := Zone(rule.Zone)
	if err != nil {
		return nil, err
	}
	if !rule.Until.IsZero() && rule.Until.Before(to) {
		to = rule.Until
	}
	var starts []time.Time
	// The clock on the wall may be a day away from UTC, and a start of the day before may be moved into the span.
	year, month, day := from.In(zone).AddDate(0, 0, -1).Date()
	for date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); len(starts) < most; date = date.AddDate(0, 0, 1) {
		if date.After(to.AddDate(0, 0, 2)) {
			break
		}
		if !rule.Days.Has(date.Weekday()) {
			continue
		}
		if at := moment(date.Add(rule.At), zone); !at.Before(from) && at.Before(to) {
			starts = append(starts, at)
		}
	}
	return starts, nil
}

// moment returns when the clocks of a zone show a time, which is written as if it were UTC. Of a time that comes twice
// it is the first; one that does not come is counted by the clock before the gap: as RFC 5545 has it.
func moment(shown time.Time, zone *time.Location) time.Time {
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(shown.Add(-24*time.Hour)), offset(shown.Add(24*time.Hour))
	for _, by := range []time.Duration{before, after} {
		if at := shown.Add(-by); offset(at) == by {
			return at
		}
	}
	return shown.Add(-before)
}

// Ahead is how far ahead the occurrences of rules are planned.
const Ahead = leasehold.ReservationsPlanned

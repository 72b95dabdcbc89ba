package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

var dayNames = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// The sets of days that have a name.
const (
	weekends leasehold.Weekdays = 1<<time.Saturday | 1<<time.Sunday
	weekdays                    = leasehold.AllDays &^ weekends
)

// DaysAllowed says which texts ParseDays reads.
const DaysAllowed = "day, weekdays, weekends, or days such as mon,wed,fri"

// ParseDays reads days of the week.
func ParseDays(text string) (days leasehold.Weekdays, err error) {
	switch strings.ToLower(text) {
	case "day", "daily":
		return leasehold.AllDays, nil
	case "weekdays", "weekday":
		return weekdays, nil
	case "weekends", "weekend":
		return weekends, nil
	}
	for one := range strings.SplitSeq(strings.ToLower(text), ",") {
		day, ok := parseDay(strings.TrimSpace(one))
		if !ok {
			return 0, fmt.Errorf("%q says no days of the week: allowed are %s", brief(text), DaysAllowed)
		}
		days |= 1 << day
	}
	return days, nil
}

// parseDay reads one day of the week: its name, or the first three letters of that.
func parseDay(text string) (time.Weekday, bool) {
	for i, name := range dayNames {
		if text == name || text == strings.ToLower(time.Weekday(i).String()) {
			return time.Weekday(i), true
		}
	}
	return 0, false
}

// DaysText writes days as ParseDays reads them. A week begins on Monday.
func DaysText(days leasehold.Weekdays) string {
	switch days {
	case leasehold.AllDays:
		return "day"
	case weekdays:
		return "weekdays"
	case weekends:
		return "weekends"
	}
	var names []string
	for i := range dayNames {
		if day := time.Weekday((i + 1) % len(dayNames)); days.Has(day) {
			names = append(names, dayNames[day])
		}
	}
	return strings.Join(names, ",")
}

// ParseClock reads a time of the day, such as 14:00 or 14:00:30.
func ParseClock(text string) (time.Duration, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		// The layout also takes 9:05, and fractions of seconds, which nobody means.
		if at, err := time.Parse(layout, text); err == nil && at.Nanosecond() == 0 {
			return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute +
				time.Duration(at.Second())*time.Second, nil
		}
	}
	return 0, fmt.Errorf("%q is no time of the day: write it as 14:00", brief(text))
}

// ClockText writes a time of the day as ParseClock reads it.
func ClockText(at time.Duration) string {
	shown := time.Time{}.Add(at)
	if shown.Second() != 0 {
		return shown.Format("15:04:05")
	}
	return shown.Format("15:04")
}

// MomentAllowed says which texts ParseMoment reads.
const MomentAllowed = "14:00, tomorrow 14:00, 2026-11-20 14:00 or 2026-11-20T14:00:00+01:00"

// ParseMoment reads a moment as people write it, by the clocks of the zone of now. A time without a day is the next
// one: today's, or tomorrow's if that is past.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	day, clock, dated := strings.Cut(strings.TrimSpace(text), " ")
	if !dated {
		day, clock = "", day
	}
	at, err := ParseClock(strings.TrimSpace(clock))
	if err != nil {
		return time.Time{}, badMoment(text)
	}
	year, month, date := now.Date()
	on := time.Date(year, month, date, 0, 0, 0, 0, time.UTC) // as it is shown, whatever the zone
	switch strings.ToLower(day) {
	case "":
		if today := moment(on.Add(at), now.Location()); !today.Before(now.Truncate(time.Minute)) {
			return today, nil
		}
		on = on.AddDate(0, 0, 1)
	case "today":
	case "tomorrow":
		on = on.AddDate(0, 0, 1)
	default:
		if on, err = time.Parse(time.DateOnly, day); err != nil || on.Year() < 1970 || on.Year() > 2200 {
			return time.Time{}, badMoment(text)
		}
	}
	return moment(on.Add(at), now.Location()), nil
}

func badMoment(text string) error {
	return fmt.Errorf("%q is no moment: allowed are %s", brief(text), MomentAllowed)
}

// brief cuts a text that is too long to be shown.
func brief(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

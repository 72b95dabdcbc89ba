package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

func TestStarts(t *testing.T) {
	weekdays := leasehold.Weekdays(0b0111110)
	for name, test := range map[string]struct {
		rule     leasehold.Rule
		from, to string
		want     string
	}{
		"weekdays": {leasehold.Rule{Zone: "UTC", Days: weekdays, At: 14 * time.Hour}, "2026-11-19T15:00:00Z", "2026-11-25T00:00:00Z",
			"2026-11-20T14:00:00Z 2026-11-23T14:00:00Z 2026-11-24T14:00:00Z"},
		"from is in, to is not": {leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays}, "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-19T00:00:00Z"},
		"until": {leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, Until: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}, "2026-11-19T00:00:00Z", "2026-12-20T00:00:00Z",
			"2026-11-19T00:00:00Z"},
		"a time that does not come in spring is as late as before the change": {leasehold.Rule{Zone: "Europe/Berlin", Days: leasehold.AllDays, At: 150 * time.Minute},
			"2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z", "2026-03-28T01:30:00Z 2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		"a time that comes twice in autumn is the first": {leasehold.Rule{Zone: "Europe/Berlin", Days: leasehold.AllDays, At: 150 * time.Minute},
			"2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z", "2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		"14:00 stays 14:00": {leasehold.Rule{Zone: "America/New_York", Days: leasehold.AllDays, At: 14 * time.Hour}, "2026-03-07T00:00:00Z", "2026-03-09T00:00:00Z",
			"2026-03-07T19:00:00Z 2026-03-08T18:00:00Z"},
		"the day is that of the zone": {leasehold.Rule{Zone: "Pacific/Kiritimati", Days: 1 << time.Monday, At: time.Hour}, "2026-11-20T00:00:00Z", "2026-11-25T00:00:00Z",
			"2026-11-22T11:00:00Z"},
	} {
		at := func(text string) time.Time {
			moment, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return moment
		}
		starts, err := Starts(&test.rule, at(test.from), at(test.to), 64)
		var got []string
		for _, start := range starts {
			got = append(got, start.UTC().Format(time.RFC3339))
		}
		if text := strings.Join(got, " "); err != nil || text != test.want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, test.want)
		}
	}
	if some, _ := Starts(&leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays}, time.Unix(0, 0), time.Unix(1e9, 0), 3); len(some) != 3 {
		t.Errorf("%d starts, want 3", len(some))
	}
	for _, zone := range []string{"", "Local", "Berlin", "../etc"} {
		if _, err := Starts(&leasehold.Rule{Zone: zone}, time.Unix(0, 0), time.Unix(1, 0), 1); err == nil {
			t.Errorf("%q is taken for a zone", zone)
		}
	}
}

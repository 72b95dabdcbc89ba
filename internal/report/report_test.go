package report

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/reports"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// sum adds holds to a report of the day before noon.
func sum(t *testing.T, by string, holds ...Hold) reports.Report {
	t.Helper()
	s, err := New("default", "gpu", reports.Query{From: noon.Add(-24 * time.Hour), Until: noon, By: by})
	if err != nil {
		t.Fatal(err)
	}
	for i := range holds {
		s.Add(&holds[i])
	}
	return s.Report()
}

func ago(h float64) time.Time { return noon.Add(-time.Duration(h * float64(time.Hour))) }

var holds = []Hold{
	{Holder: "ann", Since: ago(4), Until: ago(2), Waited: time.Hour, Busy: 3 * time.Hour, Idle: time.Hour,
		Share: leasehold.Share{Units: 2, Labels: leasehold.Labels{{Key: "team", Value: "nlp"}},
			Hosts: []leasehold.HostUnits{{Host: "a", Units: 1}, {Host: "b", Units: 1}}}},
	{Holder: "bob", Since: ago(1), Until: ago(0), Share: leasehold.Share{Units: 1,
		Hosts: []leasehold.HostUnits{{Host: "a", Units: 1}}}},
	// Half of it is in the day, and its wait was before.
	{Holder: "ann", Since: ago(26), Until: ago(22), Waited: time.Hour, Busy: 2 * time.Hour, Idle: 2 * time.Hour,
		Share: leasehold.Share{Units: 1, Hosts: []leasehold.HostUnits{{Host: "b", Units: 1}}}},
	{Holder: "old", Since: ago(30), Until: ago(25)},
}

func TestSums(t *testing.T) {
	for by, want := range map[string]string{
		"":           "ann 6.0 4.0 2.0 1.0 2, bob 1.0 – – 0.0 1",
		"label:team": "nlp 4.0 3.0 1.0 1.0 1, (none) 3.0 1.0 1.0 0.0 2",
		"host":       "b 4.0 2.5 1.5 0.5 2, a 3.0 1.5 0.5 0.5 2",
	} {
		r := sum(t, by, holds...)
		if got := told(r.Rows...); got != want {
			t.Errorf("by %q: %s, want %s", by, got, want)
		}
		if got := told(r.Total); got != "(none) 7.0 4.0 2.0 1.0 3" {
			t.Errorf("the total by %q is %s", by, got)
		}
	}
}

func told(rows ...reports.Row) string {
	var texts []string
	for _, r := range rows {
		texts = append(texts, strings.Join([]string{Name(&r), Hours(r.HeldMS), MaybeHours(r.BusyMS), MaybeHours(r.IdleMS),
			Hours(r.WaitedMS)}, " ")+" "+string(rune('0'+r.Holds)))
	}
	return strings.Join(texts, ", ")
}

func TestWhatCannotBeAsked(t *testing.T) {
	for _, q := range []reports.Query{{From: ago(1), Until: noon, By: "colour"}, {From: ago(1), Until: noon, By: "label:"},
		{From: noon, Until: noon}} {
		if _, err := New("default", "gpu", q); err == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}

func TestGroupsAreBounded(t *testing.T) {
	many := make([]Hold, maxRows+5)
	for i := range many {
		many[i] = Hold{Holder: strings.Repeat("x", i), Since: ago(1), Until: noon}
	}
	if r := sum(t, "", many...); len(r.Rows) != maxRows+1 || r.Rows[0].Name != Others || r.Rows[0].Holds != 5 {
		t.Errorf("there are %d rows, and the first is %+v", len(r.Rows), r.Rows[0])
	}
}

func TestWritten(t *testing.T) {
	hostile := Hold{Holder: `=cmd|' /C'!<b>"`, Since: ago(3), Until: noon}
	r := sum(t, "", append(holds, hostile)...)
	var csv, svg strings.Builder
	if err := CSV(&csv, &r); err != nil {
		t.Fatal(err)
	}
	want := "holder,held_h,idle_h,busy_h,waited_h,holds\nann,6.0,2.0,4.0,1.0,2\n" +
		"\"'=cmd|' /C'!<b>\"\"\",3.0,,,0.0,1\nbob,1.0,,,0.0,1\n"
	if csv.String() != want {
		t.Errorf("CSV:\n%s\nwant\n%s", &csv, want)
	}
	if err := SVG(&svg, &r); err != nil {
		t.Fatal(err)
	}
	if s := svg.String(); strings.Contains(s, "<b>") || strings.Contains(s, "<script") || !strings.Contains(s, ">6.0 h<") ||
		!strings.Contains(s, "held but idle") || strings.Count(s, `class="idle"`) != 2 {
		t.Errorf("SVG:\n%s", s)
	}
	if got := IdleShare(&r.Rows[0]) + IdleShare(&r.Rows[2]); got != "33 %–" {
		t.Errorf("the share that was idle is %s", got)
	}
}

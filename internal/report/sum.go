// Package report sums up who held how much of a pool, and writes it for people. It takes holds one by one and keeps a
// row for each group, so that a journal of any length costs the same memory.
//
// Times are of units. What hosts reported of a hold is scaled to the part of it that is in the time asked for; what
// they did not report is neither busy nor idle.
package report

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reports"
)

// What holds can be grouped by, beside label:NAME.
const (
	ByHolder = "holder"
	ByHost   = "host"
	byLabel  = "label:"
)

// maxRows bounds the groups of a report. What comes after them is one group more.
const maxRows = 10000

// Others is the name of that group.
const Others = "(others)"

// A Hold is one hold, or what one that goes on has been so far.
type Hold struct {
	Holder       string
	Share        leasehold.Share
	Since, Until time.Time
	Waited       time.Duration
	Busy, Idle   time.Duration // summed over its units; both 0: nobody reported it
}

// A Sum is a report that is being made.
type Sum struct {
	report reports.Report
	rows   map[string]*reports.Row
}

// New begins the report that q asks for. Its times are given.
func New(namespace, resource string, q reports.Query) (*Sum, error) {
	by := cmp.Or(q.By, ByHolder)
	if name, isLabel := strings.CutPrefix(by, byLabel); by != ByHolder && by != ByHost && (!isLabel || name == "") {
		return nil, errors.New("by is what to group by: holder, host or label:NAME")
	}
	if !q.From.Before(q.Until) {
		return nil, errors.New("from has to be before until")
	}
	return &Sum{rows: map[string]*reports.Row{}, report: reports.Report{Namespace: namespace, Resource: resource,
		By: by, From: v1.Time{Time: q.From}, Until: v1.Time{Time: q.Until}}}, nil
}

// Add adds a hold. What of it is outside the time of the report does not count; a wait counts with the grant.
func (s *Sum) Add(h *Hold) {
	from, until := s.report.From.Time, s.report.Until.Time
	began, ended := h.Since, h.Until
	if began.Before(from) {
		began = from
	}
	if ended.After(until) {
		ended = until
	}
	if !began.Before(ended) {
		return
	}
	units := max(1, h.Share.Units)
	held := ended.Sub(began)
	part := float64(held) / float64(h.Until.Sub(h.Since))
	row := reports.Row{Holds: 1, HeldMS: held.Milliseconds() * int64(units)}
	if h.Busy != 0 || h.Idle != 0 {
		busy, idle := scaled(h.Busy, part), scaled(h.Idle, part)
		row.BusyMS, row.IdleMS = &busy, &idle
	}
	if !h.Since.Before(from) {
		row.WaitedMS = h.Waited.Milliseconds()
	}
	add(&s.report.Total, &row)
	s.group(h, &row, units)
}

// group adds a hold to the row of its group, or to those of its hosts, each with its part.
func (s *Sum) group(h *Hold, row *reports.Row, units int) {
	switch name, isLabel := strings.CutPrefix(s.report.By, byLabel); {
	case isLabel:
		value := ""
		for _, l := range h.Share.Labels {
			if l.Key == name {
				value = l.Value
			}
		}
		add(s.row(value), row)
	case s.report.By == ByHost && len(h.Share.Hosts) > 0:
		for _, host := range h.Share.Hosts {
			part := portion(row, float64(host.Units)/float64(units))
			add(s.row(host.Host), &part)
		}
	case s.report.By == ByHost:
		add(s.row(""), row)
	default:
		add(s.row(h.Holder), row)
	}
}

// row returns the row of a group.
func (s *Sum) row(name string) *reports.Row {
	row, known := s.rows[name]
	if !known && len(s.rows) >= maxRows {
		name = Others
		row, known = s.rows[name]
	}
	if !known {
		row = &reports.Row{Name: name}
		s.rows[name] = row
	}
	return row
}

// add adds one row to another. Nothing is known of their sum only if nothing is known of either.
func add(sum, row *reports.Row) {
	sum.Holds += row.Holds
	sum.HeldMS += row.HeldMS
	sum.WaitedMS += row.WaitedMS
	sum.BusyMS, sum.IdleMS = plus(sum.BusyMS, row.BusyMS), plus(sum.IdleMS, row.IdleMS)
}

func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// portion returns a part of a row.
func portion(row *reports.Row, part float64) reports.Row {
	some := reports.Row{Holds: row.Holds, HeldMS: int64(float64(row.HeldMS) * part),
		WaitedMS: int64(float64(row.WaitedMS) * part)}
	if row.BusyMS != nil {
		some.BusyMS, some.IdleMS = new(int64(float64(*row.BusyMS)*part)), new(int64(float64(*row.IdleMS)*part))
	}
	return some
}

// Report returns what was summed up, those that held longest first.
func (s *Sum) Report() reports.Report {
	s.report.Rows = make([]reports.Row, 0, len(s.rows))
	for _, row := range s.rows {
		s.report.Rows = append(s.report.Rows, *row)
	}
	slices.SortFunc(s.report.Rows, func(a, b reports.Row) int {
		return cmp.Or(cmp.Compare(b.HeldMS, a.HeldMS), cmp.Compare(a.Name, b.Name))
	})
	return s.report
}

// scaled returns a part of some time, in milliseconds.
func scaled(d time.Duration, part float64) int64 { return int64(float64(d.Milliseconds()) * part) }

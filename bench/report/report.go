// Package report has the outcome of a benchmark: what was measured, and how it is shown as a table, as
// JSON and as a plot.
package report

import (
	"encoding/json"
	"io"
	"slices"
	"time"
)

// A Run is everything that one run of the benchmark measured.
type Run struct {
	Machine Machine  `json:"machine"`
	Servers []Server `json:"servers"`
	Missing []string `json:"missing,omitempty"` // what was left out, and why
	Tables  []*Table `json:"tables"`
	Rounds  int      `json:"rounds"`
	Seconds float64  `json:"seconds"` // of each measurement
	Took    float64  `json:"took_seconds"`
	Early   bool     `json:"ended_early,omitempty"` // somebody ended it
}

// A Machine is where it ran.
type Machine struct {
	CPUs       int     `json:"cpus"`
	CPU        string  `json:"cpu"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	SyncMillis float64 `json:"fdatasync_ms"` // how long the disk takes to sync 4 KiB
	SyncAfter  float64 `json:"fdatasync_after_ms,omitempty"`
	Load       float64 `json:"load_before"` // processes that wanted a processor before it began
}

// A Server is a system that was started.
type Server struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Setup   string `json:"setup"`
	Wires   string `json:"wires,omitempty"`
}

// A Table is one workload.
type Table struct {
	Workload string   `json:"workload"`
	Title    string   `json:"title"`
	Nodes    int      `json:"nodes"`
	Columns  []Column `json:"columns"`
	Rows     []*Row   `json:"rows"`
}

// A Column is one figure of a workload. The first column is what systems are compared by.
type Column struct {
	Key    string `json:"key"`
	Title  string `json:"title"`
	Lower  bool   `json:"lower,omitempty"` // less is better
	Digits int    `json:"digits,omitempty"`
}

// Metrics are the figures of one measurement, by the keys of columns.
type Metrics map[string]float64

// A Row is one system in one workload.
type Row struct {
	System string    `json:"system"`
	Via    string    `json:"via"`
	Rounds []Metrics `json:"rounds,omitempty"`
	Note   string    `json:"note,omitempty"` // why there is nothing, or not all of it
	Median Metrics   `json:"median,omitempty"`
	Ratio  float64   `json:"leasehold_ratio,omitempty"` // how many times better Leasehold is
}

// Row returns the row of a system, and adds it if there is none.
func (t *Table) Row(system, via string) *Row {
	for _, r := range t.Rows {
		if r.System == system {
			return r
		}
	}
	r := &Row{System: system, Via: via}
	t.Rows = append(t.Rows, r)
	return r
}

// Add adds a round.
func (r *Row) Add(m Metrics) {
	r.Rounds = append(r.Rounds, m)
	r.Median = Metrics{}
	for key := range m {
		r.Median[key] = Median(r.Values(key))
	}
}

// Values returns a figure of all rounds.
func (r *Row) Values(key string) (all []float64) {
	for _, m := range r.Rounds {
		if v, ok := m[key]; ok {
			all = append(all, v)
		}
	}
	return all
}

// Ours is the system that the others are compared with.
const Ours = "leasehold"

// compare works out how much better our system is than each other.
func (t *Table) compare() {
	first := t.Columns[0]
	var ours float64
	for _, r := range t.Rows {
		if r.System == Ours {
			ours = r.Median[first.Key]
		}
	}
	for _, r := range t.Rows {
		theirs := r.Median[first.Key]
		if r.System == Ours || ours <= 0 || theirs <= 0 {
			continue
		}
		r.Ratio = ours / theirs
		if first.Lower {
			r.Ratio = theirs / ours
		}
	}
}

// Finish works out what follows from the figures.
func (r *Run) Finish(began time.Time) {
	r.Took = time.Since(began).Seconds()
	r.Tables = slices.DeleteFunc(r.Tables, func(t *Table) bool { return len(t.Rows) == 0 })
	for _, t := range r.Tables {
		t.compare()
	}
}

// Files returns how to write each file of the run, by its name.
func (r *Run) Files() map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{"result.json": r.JSON, "result.svg": r.Bars}
	if r.growth() != nil {
		files["growth.svg"] = r.Growth
	}
	return files
}

// JSON writes the whole run.
func (r *Run) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Median returns the value in the middle; 0 if there are none.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

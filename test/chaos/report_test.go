//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A kind is a way in which a promise is broken.
type kind string

const (
	twoHolders      kind = "two holders believe"
	tokenBack       kind = "a token is not larger than one before"
	lostWrite       kind = "an acknowledged write is lost"
	staleRead       kind = "a read is stale"
	watchGap        kind = "watches differ, or lack something"
	notLinearizable kind = "a history is not linearizable"
	refusedHolder   kind = "a guard refuses a holder"
	outlived        kind = "something outlived its session"
	disagree        kind = "servers disagree"
	died            kind = "a server ended without a reason"
	damaged         kind = "a value is damaged"
	stuck           kind = "it does not go on after the trouble"
	strange         kind = "an answer that nobody can expect"
)

// A violation is one promise that was broken.
type violation struct {
	At   string `json:"at"`
	Kind kind   `json:"kind"`
	Text string `json:"text"`
}

// A faultCount is what there was of one kind of fault.
type faultCount struct {
	Times   int     `json:"times"`
	Seconds float64 `json:"seconds"`
	Silence float64 `json:"longest_silence_seconds"` // in which no write was acknowledged
}

// A report is what a run comes to.
type report struct {
	mu      sync.Mutex // guards what follows
	started time.Time
	log     func(format string, args ...any)
	now     func() time.Time
	fault   string    // that goes on, or was the last
	written time.Time // when the last write was acknowledged; zero: nobody writes
	// patience bounds the time that a judge takes for one history, which may be exponential.
	patience time.Duration

	dir string // for histories that nothing explains; empty: they are not kept

	Seed       uint64                    `json:"seed"`
	Servers    int                       `json:"servers"`
	Seconds    float64                   `json:"seconds"`
	Rounds     int                       `json:"rounds"`
	Faults     map[string]*faultCount    `json:"faults"`
	Calls      map[string]map[string]int `json:"calls"` // by verb, by outcome
	Counts     map[string]int            `json:"counts"`
	Histories  int                       `json:"histories"`
	Judged     int                       `json:"judged_calls"`
	Undecided  int                       `json:"histories_too_hard_to_judge"`
	Violations []violation               `json:"violations"`
	LeftOut    []string                  `json:"left_out,omitempty"`
}

func newReport(log func(string, ...any)) *report {
	return &report{
		started: time.Now(), now: time.Now, log: log, patience: 20 * time.Second,
		Faults: map[string]*faultCount{}, Calls: map[string]map[string]int{}, Counts: map[string]int{}, Violations: []violation{},
	}
}

func (r *report) violated(k kind, format string, args ...any) {
	r.mu.Lock()
	v := violation{time.Since(r.started).Round(time.Millisecond).String(), k, fmt.Sprintf(format, args...)}
	r.Violations = append(r.Violations, v)
	first := len(r.Violations) <= 50
	r.mu.Unlock()
	if first {
		r.tell("VIOLATION: %s: %s", k, v.Text)
	}
}

// keep writes down a history that nothing explains: as lines, and for a browser.
func (r *report) keep(what string, model porcupine.Model, operations []porcupine.Operation) {
	if r.dir == "" {
		return
	}
	name := filepath.Join(r.dir, strings.NewReplacer("/", "-", " ", "-").Replace(what)+fmt.Sprint("-round", r.Rounds))
	var lines strings.Builder
	for _, o := range operations {
		fmt.Fprintln(&lines, model.DescribeOperation(o.Input, o.Output))
	}
	_, info := porcupine.CheckOperationsVerbose(model, operations, r.patience)
	err := os.WriteFile(name+".txt", []byte(lines.String()), 0o600)
	if err == nil {
		err = porcupine.VisualizePath(model, info, name+".html")
	}
	if err != nil {
		r.tell("%s cannot be kept: %v", what, err)
	}
}

func (r *report) kinds() map[kind]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[kind]int{}
	for _, v := range r.Violations {
		found[v.Kind]++
	}
	return found
}

// tell writes a line with the time.
func (r *report) tell(format string, args ...any) {
	r.log("%8.3fs %s", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}

func (r *report) count(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Counts[what] += n
}

func (r *report) called(verb, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Calls[verb] == nil {
		r.Calls[verb] = map[string]int{}
	}
	r.Calls[verb][outcome]++
}

// writing says that clients write from now on. Before, there was no silence, however long
// a judge took.
func (r *report) writing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written, r.fault = r.now(), ""
}

// wrote says that they stopped. A silence that nothing ended counts as well.
func (r *report) wrote() {
	r.acknowledged()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = time.Time{}
}

// acknowledged notes that a write was: the silence before it is over.
func (r *report) acknowledged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written.IsZero() {
		return
	}
	silence := r.now().Sub(r.written).Seconds()
	r.written = r.now()
	if f := r.Faults[r.fault]; f != nil {
		f.Silence = max(f.Silence, silence)
	}
}

func (r *report) judged(calls int, undecided bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Histories++
	r.Judged += calls
	if undecided {
		r.Undecided++
	}
}

// begin notes a fault, and returns what to call at its end.
func (r *report) begin(name string) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.Faults[name]
	if f == nil {
		f = &faultCount{}
		r.Faults[name] = f
	}
	f.Times++
	r.fault = name
	start := time.Now()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		f.Seconds += time.Since(start).Seconds()
	}
}

func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Seconds = time.Since(r.started).Seconds()
	var b strings.Builder
	fmt.Fprintf(&b, "chaos: seed %d, %d servers, %d rounds in %.0f s\n", r.Seed, r.Servers, r.Rounds, r.Seconds)
	fmt.Fprintf(&b, "\n  %-34s %6s %9s %16s\n", "fault", "times", "seconds", "longest silence")
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		f := r.Faults[name]
		fmt.Fprintf(&b, "  %-34s %6d %9.1f %14.2f s\n", name, f.Times, f.Seconds, f.Silence)
	}
	fmt.Fprintf(&b, "\n  %-16s %s\n", "call", "outcomes")
	for _, verb := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(&b, "  %-16s", verb)
		for _, o := range slices.Sorted(maps.Keys(r.Calls[verb])) {
			fmt.Fprintf(&b, " %s %d", o, r.Calls[verb][o])
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "  %d %s\n", r.Counts[what], what)
	}
	fmt.Fprintf(&b, "\n  %d histories with %d calls went to Porcupine; %d were too hard to judge\n", r.Histories, r.Judged, r.Undecided)
	for _, reason := range r.LeftOut {
		fmt.Fprintf(&b, "  left out: %s\n", reason)
	}
	fmt.Fprintf(&b, "  %d violations\n", len(r.Violations))
	for _, v := range r.Violations[:min(50, len(r.Violations))] {
		fmt.Fprintf(&b, "    %s %s: %s\n", v.At, v.Kind, v.Text)
	}
	return b.String()
}

// save writes the report as text and as JSON.
func (r *report) save(t *testing.T) {
	t.Helper()
	text := r.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(reportDir(t), "report.json"), append(bytes, '\n'), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(reportDir(t), "report.txt"), []byte(text), 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

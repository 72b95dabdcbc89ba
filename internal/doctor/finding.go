package doctor

import (
	"fmt"
	"maps"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
)

// The results of one look, best first.
const (
	ResultOK      = "ok"
	ResultWarning = "warning"
	ResultProblem = "problem"
)

// A finding is what one check found, for people and, in JSON, for programs.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`

	// Values is what was measured, for programs; each name says in what unit.
	Values map[string]float64 `json:"values,omitempty"`

	err error // of a problem: what to end with
}

// fine returns a finding that is ok; warn, fail and unfit make it worse.
func fine(check, format string, args ...any) finding {
	return finding{Check: check, Result: ResultOK, Detail: fmt.Sprintf(format, args...)}
}

// with adds what was measured.
func (f finding) with(name string, value float64) finding {
	values := map[string]float64{name: value}
	maps.Copy(values, f.Values)
	f.Values = values
	return f
}

// warn makes it a warning: something to improve, which does not change the exit code.
func (f finding) warn(advice string) finding {
	f.Result, f.Advice = ResultWarning, advice
	return f
}

// fail makes it a problem that ends the program with the exit code of an error.
func (f finding) fail(code leasehold.Code, advice string) finding {
	f.Result, f.Advice, f.err = ResultProblem, advice, cli.Failure(code, "%s: %s", f.Check, f.Detail)
	return f
}

// unfit makes it a problem of this machine, which has an exit code of its own: a scheduler can then
// place the work elsewhere.
func (f finding) unfit(advice string) finding {
	f.Result, f.Advice, f.err = ResultProblem, advice, cli.UnfitError(f.Check+": "+f.Detail)
	return f
}

// A Diagnosis is all findings, and the worst result among them.
type Diagnosis struct {
	Result   string    `json:"result"`
	Findings []finding `json:"findings"`
}

// Add adds a finding; the worst one is the result.
func (d *Diagnosis) Add(f finding) {
	d.Findings = append(d.Findings, f)
	if f.Result == ResultProblem || f.Result == ResultWarning && d.Result == ResultOK {
		d.Result = f.Result
	}
}

// Problem returns the error of the first problem: later ones often follow from it.
func (d *Diagnosis) Problem() error {
	for _, f := range d.Findings {
		if f.err != nil {
			return cli.Hint(f.err, "%s", f.Advice)
		}
	}
	return nil
}

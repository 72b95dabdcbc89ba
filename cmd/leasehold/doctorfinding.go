package main

import (
	"fmt"
	"maps"

	"github.com/leasehold/leasehold"
)

// The results of one look, best first.
const (
	resultOK      = "ok"
	resultWarning = "warning"
	resultProblem = "problem"
)

// A finding is what one look found.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`

	// Values is what was measured, for programs; each name says in what unit.
	Values map[string]float64 `json:"values,omitempty"`

	err error // of a problem: what to end with
}

func fine(check, format string, args ...any) finding {
	return finding{Check: check, Result: resultOK, Detail: fmt.Sprintf(format, args...)}
}

// with adds what was measured.
func (f finding) with(name string, value float64) finding {
	values := map[string]float64{name: value}
	maps.Copy(values, f.Values)
	f.Values = values
	return f
}

func (f finding) warn(advice string) finding {
	f.Result, f.Advice = resultWarning, advice
	return f
}

func (f finding) fail(code leasehold.Code, advice string) finding {
	f.Result, f.Advice, f.err = resultProblem, advice, failure(code, "%s: %s", f.Check, f.Detail)
	return f
}

func (f finding) unfit(advice string) finding {
	f.Result, f.Advice, f.err = resultProblem, advice, unfitError(f.Check+": "+f.Detail)
	return f
}

// A diagnosis is all findings, and the worst result among them.
type diagnosis struct {
	Result   string    `json:"result"`
	Findings []finding `json:"findings"`
}

func (d *diagnosis) add(f finding) {
	d.Findings = append(d.Findings, f)
	if f.Result == resultProblem || f.Result == resultWarning && d.Result == resultOK {
		d.Result = f.Result
	}
}

// problem is the first of them: the others often follow from it.
func (d *diagnosis) problem() error {
	for _, f := range d.Findings {
		if f.err != nil {
			return hint(f.err, "%s", f.Advice)
		}
	}
	return nil
}

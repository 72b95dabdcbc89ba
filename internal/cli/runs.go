package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Runs are the last runs of a job, as "run --at-most-every" keeps them in a record. Only a holder of
// the job's lease writes it, under the fence of that lease.
type Runs struct {
	Counted *v1.Time `json:"counted,omitempty"` // when the last run began that counts
	Last    []JobRun `json:"last"`              // oldest first
}

// A JobRun is one run of a job. Its times are those of the server.
type JobRun struct {
	Started  v1.Time     `json:"started"`
	Duration v1.Duration `json:"duration,omitzero"`
	Outcome  string      `json:"outcome"` // RunBegan until its end is known
	Code     *int        `json:"code,omitempty"`
	Holder   string      `json:"holder"`
	Machine  string      `json:"machine"`
	Token    uint64      `json:"token"`
	Every    v1.Duration `json:"every"`             // at most, as this run was asked to
	Revision uint64      `json:"revision,omitzero"` // that wrote it last; of the newest, the record has it
}

// The outcomes of a run.
const (
	RunBegan     = "began"
	RunSucceeded = "succeeded"
	RunFailed    = "failed"
	RunStopped   = "stopped" // because its lease was about to end
)

// RunsRecord returns the name of the record that has the runs of a job.
func RunsRecord(job string) string { return ".runs/" + job }

// The record has as many runs as are useful, and few enough bytes for any holder's name.
const (
	maxRuns      = 20
	maxRunsBytes = 32 << 10
)

// ReadRuns reads the runs of a job; none if there is no record. Its error is a Refused if the record
// is there and is not one of runs.
func ReadRuns(ctx context.Context, c *v1.Caller, job string) (Runs, error) {
	record, err := c.Record(ctx, RunsRecord(job), 0)
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
		return Runs{}, nil
	case err != nil:
		return Runs{}, err
	}
	runs, err := ParseRuns(record.Value)
	if err != nil || record.Large != nil {
		return Runs{}, Failure(leasehold.Refused, "the record %s is not one that run wrote", RunsRecord(job))
	}
	if newest := runs.Newest(); newest != nil {
		newest.Revision = record.Mod
	}
	return runs, nil
}

// ParseRuns reads the value of a record of runs. What a newer version adds to it is ignored.
func ParseRuns(value []byte) (runs Runs, err error) {
	if err := json.Unmarshal(value, &runs); err != nil {
		return Runs{}, err
	}
	for _, run := range runs.Last {
		if run.Started.IsZero() || run.Outcome == "" {
			return Runs{}, errors.New("a run has no start or no outcome")
		}
	}
	if len(runs.Last) == 0 {
		return Runs{}, errors.New("there are no runs")
	}
	return runs, nil
}

// Value returns the runs as the record has them, without the oldest if there are too many.
func (r Runs) Value() []byte {
	r.Last = slices.Clone(r.Last[max(0, len(r.Last)-maxRuns):])
	for {
		value, err := json.Marshal(r)
		if err != nil {
			panic(err) // there is nothing in it that could fail
		}
		if len(value) <= maxRunsBytes || len(r.Last) == 1 {
			return value
		}
		r.Last = r.Last[1:]
	}
}

// Newest returns the last run; nil if there is none.
func (r Runs) Newest() *JobRun {
	if len(r.Last) == 0 {
		return nil
	}
	return &r.Last[len(r.Last)-1]
}

// Events returns the runs of a job as its history shows them.
func (r Runs) Events(namespace, job string) []v1.Event {
	events := make([]v1.Event, 0, len(r.Last))
	for _, run := range r.Last {
		reason := run.outcome() + " on " + run.Machine
		if run.Outcome == RunBegan {
			reason = "began on " + run.Machine + "; no end is recorded" // it may still be running
		}
		events = append(events, v1.Event{
			Namespace: namespace, Resource: job, Revision: run.Revision, Kind: "ran", Holder: run.Holder,
			Token: run.Token, At: v1.Time{Time: run.Started.Add(time.Duration(run.Duration))},
			Reason: reason,
		})
	}
	return events
}

// MergeEvents puts runs among the other events, by their positions.
func MergeEvents(events, runs []v1.Event) []v1.Event {
	all := append(slices.Clip(events), runs...)
	slices.SortStableFunc(all, func(a, b v1.Event) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.N, b.N))
	})
	return all
}

// outcome says how a run ended.
func (j JobRun) outcome() string {
	took := " after " + j.Duration.String()
	switch {
	case j.Outcome == RunBegan:
		return "began, and its end was not recorded"
	case j.Outcome == RunSucceeded:
		return "succeeded" + took
	case j.Code != nil:
		return fmt.Sprintf("%s with code %d%s", j.Outcome, *j.Code, took)
	}
	return j.Outcome + took
}

// describeRuns says when a job ran last, where and with which outcome.
func (a *App) describeRuns(s *Details, r v1.Resource, runs Runs) {
	last := runs.Newest()
	if last == nil {
		return
	}
	outcome := last.outcome()
	if slices.ContainsFunc(r.Holders, func(l v1.Lease) bool { return l.Token == last.Token }) &&
		last.Outcome == RunBegan {
		outcome = "still running"
	}
	s.Line("Last run", "%s on %s by %s: %s", a.When(&last.Started), Printable(last.Machine), Printable(last.Holder),
		Printable(outcome))
	if runs.Counted != nil && !runs.Counted.Equal(last.Started.Time) {
		s.Line("", "the last that counts began %s", a.When(runs.Counted))
	}
}

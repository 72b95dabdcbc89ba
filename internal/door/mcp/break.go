package mcp

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// How long a holder has to stop. It is not what the lease has left, as for operators: that may be hours, for which no
// agent would wait.
const (
	breakPeriod = time.Minute
	maxPeriod   = time.Hour
)

// A breaking is the arguments of lease_break.
type breaking struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
	Period   *int   `json:"period_seconds"`
}

// A broken is the answer to lease_break.
type broken struct {
	Resource string   `json:"resource"`
	Holder   string   `json:"holder"`
	EndsIn   int      `json:"ends_in_seconds"`
	Next     string   `json:"next"`
	Warnings []string `json:"warnings,omitempty"`
}

// serve ends the lease on a resource. It names the lease that it saw, so that a second try cannot hit the next
// holder.
func (a *breaking) serve(c *call) (any, error) {
	period := breakPeriod
	if a.Period != nil {
		period = time.Duration(*a.Period) * time.Second
	}
	if period < 0 || period > maxPeriod {
		return nil, door.Invalid("period_seconds is %d: 0 to %d are allowed", *a.Period, seconds(maxPeriod))
	}
	err := door.First(door.CheckName("resource", a.Resource, leasehold.MaxName),
		door.CheckSegments("resource", a.Resource), door.CheckName("reason", a.Reason, leasehold.MaxName))
	if err != nil {
		return nil, err
	}
	c.resource = a.Resource
	var status leasehold.Status
	if err := c.look(func(v core.View) { status = v.Status(c.namespace, a.Resource, 0) }); err != nil {
		return nil, err
	}
	if len(status.Holders) != 1 || status.Holding != 1 {
		return nil, &leasehold.Error{Code: leasehold.Refused, Message: a.Resource +
			" does not have exactly one holder: a person has to decide which lease to break"}
	}
	reason, q, err := a.confirm(c, &status.Holders[0])
	if err != nil || q != nil {
		return q, err
	}
	if err := door.CheckName("reason", reason, leasehold.MaxName); err != nil {
		return nil, err // a person wrote it
	}
	answer, err := c.do(&core.Break{Namespace: c.namespace, ID: status.Holders[0].ID, Period: period,
		By: c.agent.holder, Reason: reason})
	if err != nil {
		return nil, err
	}
	told := broken{Resource: a.Resource, Holder: status.Holders[0].Holder, Warnings: c.warnings,
		Next: "Call lease_acquire to wait for it: it is granted in order, not to who broke it."}
	if answer.Lease != nil && !answer.Lease.Expires.IsZero() {
		told.EndsIn = seconds(answer.Lease.Remaining)
	}
	return told, nil
}

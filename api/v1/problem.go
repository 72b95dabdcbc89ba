package v1

import (
	"time"

	"github.com/leasehold/leasehold"
)

// NewProblem tells of an error as HTTP does, with a status and a title.
func NewProblem(e *leasehold.Error, status int, title string) *Problem {
	p := &Problem{
		Type: "urn:leasehold:problem:" + e.Code.String(), Title: title, Status: status,
		Code: e.Code.String(), Detail: e.Error(), Position: e.Position, Forecast: Duration(e.Forecast),
	}
	if e.Code == leasehold.Held {
		p.Waiting = &e.Waiting
	}
	for _, w := range e.Cycle {
		p.Cycle = append(p.Cycle, Wait{Holder: w.Holder, Resource: w.Resource})
	}
	if l := e.Lease; l != nil {
		p.Resource, p.ID, p.State, p.Holder, p.Reason, p.Token = l.Resource, l.ID, l.State.String(), l.Holder, l.Reason, uint64(l.Token)
		p.Since, p.Expires, p.AvailableAt = momentOf(l.Acquired), momentOf(l.Expires), momentOf(l.AvailableAt)
		if remaining := l.Remaining.Milliseconds(); p.Expires != nil {
			p.RemainingMS = &remaining
		}
	}
	return p
}

func momentOf(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{Time: t}
}

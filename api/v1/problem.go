package v1

import (
	"time"

	"github.com/leasehold/leasehold"
)

// A Problem is an error as application/problem+json.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	// With code "held": the lease in the way, and the queue behind it.
	Resource    string `json:"resource,omitempty"`
	ID          string `json:"id,omitempty"`
	State       string `json:"state,omitempty"`
	Holder      string `json:"holder,omitempty"`
	Since       *Time  `json:"since,omitempty"`
	Expires     *Time  `json:"expires,omitempty"`
	RemainingMS *int64 `json:"remaining_ms,omitempty"`
	AvailableAt *Time  `json:"available_at,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Token       uint64 `json:"token,omitempty"`
	Waiting     *int   `json:"waiting,omitempty"`
	Position    int    `json:"position,omitempty"`

	// Forecast is how long until a turn usually comes, if it was learned.
	Forecast      Duration `json:"forecast,omitzero"`
	ForecastError Duration `json:"forecast_error,omitzero"` // how far it may be off, four times of five

	// With code "refused", if the wait would have been a deadlock: who waits for what.
	Cycle []Wait `json:"cycle,omitempty"`
}

// A Wait is one edge of a cycle: a holder that waits for a resource of the next holder.
type Wait struct {
	Holder   string `json:"holder"`
	Resource string `json:"resource"`
}

// NewProblem returns an error as a problem, with the status and title that HTTP gives it.
func NewProblem(e *leasehold.Error, status int, title string) *Problem {
	p := &Problem{
		Type: "urn:leasehold:problem:" + e.Code.String(), Title: title, Status: status,
		Code: e.Code.String(), Detail: e.Error(), Position: e.Position, Forecast: Duration(e.Forecast),
		ForecastError: Duration(e.ForecastError),
	}
	if e.Code == leasehold.Held {
		p.Waiting = &e.Waiting
	}
	for _, w := range e.Cycle {
		p.Cycle = append(p.Cycle, Wait{Holder: w.Holder, Resource: w.Resource})
	}
	if l := e.Lease; l != nil {
		p.Resource, p.ID, p.State, p.Token = l.Resource, l.ID, l.State.String(), uint64(l.Token)
		p.Holder, p.Reason = l.Holder, l.Reason
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

// err returns the error that a problem describes.
func (p *Problem) err(code leasehold.Code, namespace string) *leasehold.Error {
	e := &leasehold.Error{Code: code, Message: p.Detail, Position: p.Position, Forecast: time.Duration(p.Forecast),
		ForecastError: time.Duration(p.ForecastError)}
	for _, w := range p.Cycle {
		e.Cycle = append(e.Cycle, leasehold.Wait{Holder: w.Holder, Resource: w.Resource})
	}
	if p.Waiting != nil {
		e.Waiting = *p.Waiting
	}
	// Only a refusal because of a holder has a lease to tell of.
	if code != leasehold.Held || p.Holder == "" {
		return e
	}
	e.Lease = &leasehold.Lease{
		Namespace: namespace, Resource: p.Resource, ID: p.ID, Holder: p.Holder, Reason: p.Reason,
		State: stateOf(p.State),
		Token: leasehold.Token(p.Token), Floor: leasehold.Token(p.Token),
		Acquired: p.Since.value(), Expires: p.Expires.value(), AvailableAt: p.AvailableAt.value(),
	}
	if p.RemainingMS != nil {
		e.Lease.Remaining = time.Duration(*p.RemainingMS) * time.Millisecond
	}
	return e
}

func (t *Time) value() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func stateOf(name string) leasehold.State {
	for s := leasehold.Available; s <= leasehold.Expired; s++ {
		if s.String() == name {
			return s
		}
	}
	return 0
}

// Package v1 is Leasehold's own API: the JSON that travels under /v1/, and a
// Caller that sends it. openapi.yaml beside it says the same for other languages.
package v1

import (
	"time"
)

// An AcquireRequest asks for a resource.
type AcquireRequest struct {
	Resource  string            `json:"resource"`
	Holder    string            `json:"holder"`
	ID        string            `json:"id,omitempty"`      // empty: the server makes one
	TTL       TTL               `json:"ttl,omitzero"`      // absent: 30s, or none with a session; null: none
	Session   string            `json:"session,omitempty"` // instead of a ttl
	Wait      Duration          `json:"wait,omitzero"`
	Grace     Duration          `json:"grace,omitzero"`
	HoldLimit Duration          `json:"hold_limit,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// A RenewRequest makes a lease last for its TTL from now.
type RenewRequest struct {
	ID string `json:"id"`
}

// A ReleaseRequest gives a lease back, or leaves the queue.
type ReleaseRequest struct {
	ID string `json:"id"`
}

// A ChangeRequest hands a lease to another holder or id without a gap.
type ChangeRequest struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	NewID  string `json:"new_id,omitempty"`
}

// A BreakRequest ends a lease in the name of an operator. It names a lease id, or
// a resource together with the token that the operator saw.
type BreakRequest struct {
	ID       string    `json:"id,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Token    uint64    `json:"token,omitempty"`
	Period   *Duration `json:"period,omitempty"` // absent: what remains; "0s": at once
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// A SessionRequest opens a session.
type SessionRequest struct {
	ID     string            `json:"id,omitempty"` // empty: the server makes one
	TTL    Duration          `json:"ttl,omitzero"` // absent: 30s
	Labels map[string]string `json:"labels,omitempty"`
}

// A Lease is one lease as the server saw it.
type Lease struct {
	Namespace   string            `json:"namespace"`
	Resource    string            `json:"resource"`
	ID          string            `json:"id"`
	Holder      string            `json:"holder"`
	Token       uint64            `json:"token"`
	Floor       uint64            `json:"floor"`
	State       string            `json:"state"`
	TTL         *Duration         `json:"ttl"`          // null: none of its own
	Expires     *Time             `json:"expires"`      // null: it ends only by release or break
	RemainingMS *int64            `json:"remaining_ms"` // count it from before the request was sent
	Acquired    *Time             `json:"acquired"`
	AvailableAt *Time             `json:"available_at"` // when the resource can be granted again after an unclean end
	Session     string            `json:"session,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Revision    uint64            `json:"revision"`
	WaitedMS    int64             `json:"waited_ms,omitempty"` // set if the grant was waited for: renew once before you rely on it
	Warning     string            `json:"warning,omitempty"`
}

// A Resource is everything there is to see of one resource.
type Resource struct {
	Namespace   string   `json:"namespace"`
	Resource    string   `json:"resource"`
	State       string   `json:"state"`
	Holders     []Lease  `json:"holders"`
	Waiting     int      `json:"waiting"`
	Queue       []Waiter `json:"queue,omitempty"`
	Last        *Ending  `json:"last"`
	AvailableAt *Time    `json:"available_at"`
}

// A Waiter stands in a queue.
type Waiter struct {
	Position int               `json:"position"`
	ID       string            `json:"id"`
	Holder   string            `json:"holder"`
	Session  string            `json:"session,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Since    Time              `json:"since"`
	Until    *Time             `json:"until"`
}

// An Ending is how the last lease of a resource ended.
type Ending struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
	How    string `json:"how"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     Time   `json:"at"`
}

// A Session is a promise of liveness.
type Session struct {
	Namespace   string            `json:"namespace"`
	ID          string            `json:"id"`
	TTL         Duration          `json:"ttl"`
	Expires     Time              `json:"expires"`
	RemainingMS int64             `json:"remaining_ms"`
	Opened      Time              `json:"opened"`
	Claims      int               `json:"claims"` // leases and waiters bound to it
	Labels      map[string]string `json:"labels,omitempty"`
}

// An Event is one thing that happened. ID() of the stream is "revision.n".
type Event struct {
	Namespace string `json:"namespace"`
	Revision  uint64 `json:"revision"`
	N         uint32 `json:"n"`
	Kind      string `json:"kind"`
	How       string `json:"how,omitempty"`
	At        Time   `json:"at"`
	Until     *Time  `json:"until,omitempty"`
	Resource  string `json:"resource,omitempty"`
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// A List is one page; Next is where to go on, empty at the end.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// A Problem is an error, as application/problem+json.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	// With code "held": the lease in the way.
	Holder      string `json:"holder,omitempty"`
	Since       *Time  `json:"since,omitempty"`
	Expires     *Time  `json:"expires,omitempty"`
	AvailableAt *Time  `json:"available_at,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Token       uint64 `json:"token,omitempty"`
	Waiting     *int   `json:"waiting,omitempty"`
	Position    int    `json:"position,omitempty"`
}

// A Time is written as RFC 3339 with milliseconds, in UTC.
type Time struct{ time.Time }

// A Duration is written as people write it: "30s", "1h30m", "2d".
type Duration time.Duration

// A TTL is a Duration, or explicitly none (null).
type TTL struct {
	Duration Duration
	None     bool
}

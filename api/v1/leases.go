package v1

import (
	"context"
	"time"
)

// An AcquireRequest asks for a resource, or for several: all of them or none.
type AcquireRequest struct {
	Resource  string            `json:"resource"`
	Holder    string            `json:"holder"`
	ID        string            `json:"id,omitempty"`       // empty: the server makes one
	Shared    bool              `json:"shared,omitempty"`   // one slot, of however many there are
	Slots     int               `json:"slots,omitempty"`    // 0: all, the lease is exclusive
	Capacity  int               `json:"capacity,omitempty"` // with slots: how many there are, if no definition says
	Also      []AcquireItem     `json:"also,omitempty"`     // further resources, granted at the same moment
	Party     string            `json:"party,omitempty"`    // who stands still while this waits; empty: the session, or the holder
	TTL       TTL               `json:"ttl,omitzero"`       // absent: 30s, or none with a session; null: none; "auto": as was learned
	Session   string            `json:"session,omitempty"`  // instead of a ttl
	Wait      Duration          `json:"wait,omitzero"`
	Grace     Duration          `json:"grace,omitzero"`
	HoldLimit Duration          `json:"hold_limit,omitzero"`
	Priority  int               `json:"priority,omitempty"` // in the queue: larger ones go first
	Labels    map[string]string `json:"labels,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// An AcquireItem is one more resource to be granted at the same moment.
type AcquireItem struct {
	Resource string `json:"resource"`
	ID       string `json:"id,omitempty"`
	Shared   bool   `json:"shared,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Capacity int    `json:"capacity,omitempty"`
}

// A RenewRequest makes a lease last for its TTL from now.
type RenewRequest struct {
	ID string `json:"id"`
}

// A ReleaseRequest gives a lease back, or leaves the queue. It names one id, or several:
// those are independent of each other, and the answer is an error if one of them fails.
type ReleaseRequest struct {
	ID       string   `json:"id,omitempty"`
	IDs      []string `json:"ids,omitempty"`      // instead of id, up to MaxReleases; from level 4 on
	Session  string   `json:"session,omitempty"`  // whose they are: without it, the session counts the release as somebody else's; from level 4 on
	Withdraw bool     `json:"withdraw,omitempty"` // an acquire under an unknown id may still come, and is to be refused then; from level 4 on
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

// A Lease is one lease as the server saw it.
type Lease struct {
	Namespace   string            `json:"namespace"`
	Resource    string            `json:"resource"`
	ID          string            `json:"id"`
	Holder      string            `json:"holder"`
	Token       uint64            `json:"token"`
	Floor       uint64            `json:"floor"`
	State       string            `json:"state"`
	Slots       int               `json:"slots,omitempty"`     // 0: all, it is exclusive
	Units       []string          `json:"units,omitempty"`     // the slots it got, if they have names
	TTL         *Duration         `json:"ttl"`                 // null: none of its own
	HoldLimit   Duration          `json:"hold_limit,omitzero"` // the longest that it may be held in all
	Expires     *Time             `json:"expires"`             // null: it ends only by release or break
	RemainingMS *int64            `json:"remaining_ms"`        // count it from before the request was sent
	Acquired    *Time             `json:"acquired"`
	AvailableAt *Time             `json:"available_at"` // when the resource can be granted again after an unclean end
	Session     string            `json:"session,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Revision    uint64            `json:"revision"`
	WaitedMS    int64             `json:"waited_ms,omitempty"` // set if the grant was waited for: renew once before you rely on it
	After       *Ending           `json:"after,omitempty"`     // the unclean end before it, if the definition says to warn of that
	Also        []Lease           `json:"also,omitempty"`      // what was granted at the same moment
	Warning     string            `json:"warning,omitempty"`

	// Interventions is with answers to commands, from level 4 on: that of its session.
	Interventions *uint64 `json:"interventions,omitempty"`

	Foreign string `json:"foreign,omitempty"` // the id that a foreign protocol gave it
}

// Acquire asks for a resource and stays as long as the request says to wait.
func (c *Caller) Acquire(ctx context.Context, r AcquireRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/acquire", body: r, wait: time.Duration(max(0, r.Wait)), options: options, idempotent: r.ID != ""})
}

// Renew makes a lease last for its TTL from now.
func (c *Caller) Renew(ctx context.Context, r RenewRequest) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/renew", body: r, idempotent: true})
}

// Release gives a lease back, or leaves the queue.
func (c *Caller) Release(ctx context.Context, r ReleaseRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/release", body: r, options: options, idempotent: true})
	return err
}

// Change hands a lease to another holder or id.
func (c *Caller) Change(ctx context.Context, r ChangeRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/change", body: r, options: options})
}

// Break ends a lease in the name of an operator.
func (c *Caller) Break(ctx context.Context, r BreakRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/break", body: r, options: options})
}

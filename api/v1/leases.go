package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
)

// An AcquireRequest acquires a resource, or several at the same moment: all or none.
type AcquireRequest struct {
	Resource  string            `json:"resource"`
	Holder    string            `json:"holder"`
	ID        string            `json:"id,omitempty"`       // empty: the server makes one
	Shared    bool              `json:"shared,omitempty"`   // one slot, beside others that share it
	Slots     Slots             `json:"slots,omitempty"`    // left out: all of them, exclusively
	Capacity  int               `json:"capacity,omitempty"` // with slots: how many there are, unless a definition says
	Where     string            `json:"where,omitempty"`    // of a pool: conditions on its units, such as model=H100
	Spread    bool              `json:"spread,omitempty"`   // of a pool: the units may be on several hosts
	Units     []string          `json:"units,omitempty"`    // of a pool: these, and as many slots
	Also      []AcquireItem     `json:"also,omitempty"`     // further resources, granted at the same moment
	Party     string            `json:"party,omitempty"`    // who waits, in cycles; empty: the session or holder
	TTL       TTL               `json:"ttl,omitzero"`       // absent: 30s, or the session's; null: none; "auto"
	Session   string            `json:"session,omitempty"`  // instead of a ttl
	Wait      Duration          `json:"wait,omitzero"`
	Grace     Duration          `json:"grace,omitzero"`
	HoldLimit Duration          `json:"hold_limit,omitzero"`
	Priority  int               `json:"priority,omitempty"` // larger ones are granted first
	Labels    map[string]string `json:"labels,omitempty"`
	Reason    string            `json:"reason,omitempty"`

	Reservation string `json:"reservation,omitempty"` // that it claims, which says how many slots, and which
}

// An AcquireItem is one more resource to be granted at the same moment.
type AcquireItem struct {
	Resource string `json:"resource"`
	ID       string `json:"id,omitempty"`
	Shared   bool   `json:"shared,omitempty"`
	Slots    Slots  `json:"slots,omitempty"`
	Capacity int    `json:"capacity,omitempty"`
}

// Slots is how many slots to take. The zero value is left out of a request, and means AllSlots.
type Slots int

// AllSlots takes the whole resource, exclusively. In JSON it is "all".
const AllSlots Slots = -1

// MarshalJSON writes a number, or "all".
func (n Slots) MarshalJSON() ([]byte, error) {
	if n == AllSlots {
		return []byte(`"all"`), nil
	}
	return json.Marshal(int(n))
}

// UnmarshalJSON reads a number from 1 on, or "all". It refuses 0: to take no slots is nothing that
// anybody wants, and to take all of them by mistake keeps everybody else out.
func (n *Slots) UnmarshalJSON(b []byte) error {
	var count int
	switch err := json.Unmarshal(b, &count); {
	case string(b) == `"all"`:
		*n = AllSlots
	case string(b) == "null":
		*n = 0
	case err != nil || count < 1:
		return fmt.Errorf(`%s is not a number of slots: write 1 or more, or "all"`, brief(b))
	default:
		*n = Slots(count)
	}
	return nil
}

// A RenewRequest renews a lease for its TTL from now.
type RenewRequest struct {
	ID string `json:"id"`

	// Note says how far the holder is, for people who look: at most 256 bytes. Empty takes it away,
	// nil leaves it as it was.
	Note *string `json:"note,omitempty"`
}

// A ReleaseRequest releases a lease, or leaves the queue. It names one id or several, which are
// independent: the answer is an error if one of them fails.
type ReleaseRequest struct {
	ID  string   `json:"id,omitempty"`
	IDs []string `json:"ids,omitempty"` // instead of id, up to MaxReleases

	// Session is the session of the ids. Without it, the release counts as an intervention.
	Session string `json:"session,omitempty"`

	// Withdraw also refuses an acquire under an unknown id that may arrive later.
	Withdraw bool `json:"withdraw,omitempty"`
}

// A ChangeRequest gives a lease another holder or id, without a gap.
type ChangeRequest struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	NewID  string `json:"new_id,omitempty"`
}

// A BreakRequest ends a lease as an operator. It names a lease id, or a resource with the token
// that the operator saw.
type BreakRequest struct {
	ID       string    `json:"id,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Token    uint64    `json:"token,omitempty"`
	All      bool      `json:"all,omitempty"`     // of a resource that several share: every one of them
	Waiting  bool      `json:"waiting,omitempty"` // with an id: only while it waits in a queue
	Period   *Duration `json:"period,omitempty"`  // absent: what remains; "0s": at once
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// A Lease is one lease, as the server saw it.
type Lease struct {
	Namespace   string            `json:"namespace"`
	Resource    string            `json:"resource"`
	ID          string            `json:"id"`
	Holder      string            `json:"holder"`
	Token       uint64            `json:"token"`
	Floor       uint64            `json:"floor"`
	State       string            `json:"state"`
	Slots       int               `json:"slots,omitempty"`     // 0: all, it is exclusive
	Units       []string          `json:"units,omitempty"`     // the names of its slots, if they have names
	TTL         *Duration         `json:"ttl"`                 // null: none of its own
	HoldLimit   Duration          `json:"hold_limit,omitzero"` // the total time it may be held, renewals included
	Expires     *Time             `json:"expires"`             // null: it ends by release or break alone
	RemainingMS *int64            `json:"remaining_ms"`        // from before the request was sent
	Acquired    *Time             `json:"acquired"`
	AvailableAt *Time             `json:"available_at"` // the end of the grace after an unclean end
	Session     string            `json:"session,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Revision    uint64            `json:"revision"`
	WaitedMS    int64             `json:"waited_ms,omitempty"` // after a wait: renew once before you rely on the lease
	After       *Ending           `json:"after,omitempty"`     // the unclean end before it, if the definition warns
	Also        []Lease           `json:"also,omitempty"`      // leases granted, or broken, at the same moment
	Warning     string            `json:"warning,omitempty"`

	// Interventions is the count of the lease's session, in answers to commands.
	Interventions *uint64 `json:"interventions,omitempty"`

	Foreign string `json:"foreign,omitempty"` // the id that a foreign protocol gave it
	Door    string `json:"door,omitempty"`    // the door that it was acquired through; absent: not known
	Note    string `json:"note,omitempty"`    // what the holder last said with a renewal
	Noted   *Time  `json:"noted,omitempty"`   // when that was

	Reserved *Upcoming `json:"reserved,omitempty"` // the next reservation of the resource, if one begins within a day
}

// An Upcoming is the next reservation of a resource that somebody holds.
type Upcoming struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Reason string `json:"reason,omitempty"`
	From   Time   `json:"from"`
	Until  Time   `json:"until"`
}

// Acquire acquires a resource, and waits for it as long as the request says.
func (c *Caller) Acquire(ctx context.Context, r AcquireRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{
		command: &acquireCommand{r}, method: "POST", options: options,
		wait: time.Duration(max(0, r.Wait)), idempotent: r.ID != "",
	})
}

// Renew renews a lease for its TTL from now.
func (c *Caller) Renew(ctx context.Context, r RenewRequest) (Lease, error) {
	return send[Lease](ctx, c, request{command: &renewCommand{r}, method: "POST", idempotent: true})
}

// Release releases a lease, or leaves the queue.
func (c *Caller) Release(ctx context.Context, r ReleaseRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{
		command: &releaseCommand{r}, method: "POST", options: options, idempotent: true,
	})
	if len(r.IDs) == 1 && errors.Is(err, leasehold.ErrLost) {
		return nil // of several, those that have ended are no failure; RESP does not tell several from one
	}
	return err
}

// Change gives a lease another holder or id.
func (c *Caller) Change(ctx context.Context, r ChangeRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{command: &changeCommand{r}, method: "POST", options: options})
}

// Break ends a lease as an operator. If it ended several, the newest has the others in Also.
func (c *Caller) Break(ctx context.Context, r BreakRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{command: &breakCommand{r}, method: "POST", options: options})
}

package v1

import "context"

// Limits is how much there is in the cluster, in all namespaces together, and how much of it
// there may be.
type Limits struct {
	Leases     Limit `json:"leases"`
	Sessions   Limit `json:"sessions"` // that clients opened
	Waiters    Limit `json:"waiters"`
	Namespaces Limit `json:"namespaces"`
}

// A Limit is how much there is of something, and how much there may be. What is new is
// refused beyond it; there can be more after it was lowered, or after waiters were granted
// what they waited for.
type Limit struct {
	Used    int `json:"used"`
	Allowed int `json:"allowed"`
}

// A LimitsRequest changes limits. Those that are 0 stay as they are.
type LimitsRequest struct {
	Leases     int    `json:"leases,omitempty"`
	Sessions   int    `json:"sessions,omitempty"`
	Waiters    int    `json:"waiters,omitempty"`
	Namespaces int    `json:"namespaces,omitempty"`
	By         string `json:"by,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Limits shows how much there is in the cluster, and how much there may be.
func (c *Caller) Limits(ctx context.Context) (Limits, error) {
	return send[Limits](ctx, c, request{method: "GET", path: "/v1/cluster/limits", global: true})
}

// SetLimits changes how much there may be. Nothing ends by it.
func (c *Caller) SetLimits(ctx context.Context, r LimitsRequest) (Limits, error) {
	return send[Limits](ctx, c, request{method: "POST", path: "/v1/cluster/limits", body: r, global: true, idempotent: true})
}

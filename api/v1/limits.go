package v1

import "context"

// Limits are how much the cluster has, in all namespaces together, and how much it may have.
type Limits struct {
	Leases     Limit `json:"leases"`
	Sessions   Limit `json:"sessions"` // opened by clients
	Waiters    Limit `json:"waiters"`
	Namespaces Limit `json:"namespaces"`
}

// A Limit is how much there is of something, and how much there may be. New ones are refused
// beyond it. There can be more after it was lowered, or when waiters are granted.
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

// Limits returns how much the cluster has, and how much it may have.
func (c *Caller) Limits(ctx context.Context) (Limits, error) {
	return send[Limits](ctx, c, request{method: "GET", path: "/v1/cluster/limits", global: true})
}

// SetLimits changes the limits. It ends nothing that is there.
func (c *Caller) SetLimits(ctx context.Context, r LimitsRequest) (Limits, error) {
	return send[Limits](ctx, c, request{
		method: "POST", path: "/v1/cluster/limits", body: r, global: true, idempotent: true,
	})
}

package v1

import "context"

// A MoveRequest gives a waiter another priority.
type MoveRequest struct {
	ID       string `json:"id"`
	Priority int    `json:"priority"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// An AskRequest sends a message to the holder of a resource.
type AskRequest struct {
	Resource string `json:"resource"`
	Message  string `json:"message"`
	By       string `json:"by,omitempty"`
}

// A Waiter is one entry of a queue.
type Waiter struct {
	Position int               `json:"position"`
	Priority int               `json:"priority,omitempty"`
	Slots    int               `json:"slots,omitempty"` // 0: all
	ID       string            `json:"id"`
	Holder   string            `json:"holder"`
	Session  string            `json:"session,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Since    Time              `json:"since"`
	Until    *Time             `json:"until"`
	Forecast Duration          `json:"forecast,omitzero"` // how long until its turn usually comes
	Foreign  string            `json:"foreign,omitempty"` // as in Lease

	ForecastError Duration `json:"forecast_error,omitzero"` // how far the forecast may be off, four times of five
}

// Move gives a waiter another priority.
func (c *Caller) Move(ctx context.Context, r MoveRequest, options ...Option) (Waiter, error) {
	return send[Waiter](ctx, c, request{method: "POST", path: "/v1/move", body: r, options: options})
}

// Ask sends a message to the holder of a resource, and returns the holder's lease.
func (c *Caller) Ask(ctx context.Context, r AskRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/ask", body: r, options: options})
}

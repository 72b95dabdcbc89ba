package v1

import "context"

// A MoveRequest gives a waiter another priority.
type MoveRequest struct {
	ID       string `json:"id"`
	Priority int    `json:"priority"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// An AskRequest sends whoever holds a resource a message.
type AskRequest struct {
	Resource string `json:"resource"`
	Message  string `json:"message"`
	By       string `json:"by,omitempty"`
}

// A Waiter stands in a queue.
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
	Forecast Duration          `json:"forecast,omitzero"` // in how long its turn usually comes
	Foreign  string            `json:"foreign,omitempty"` // as in Lease
}

// Move gives a waiter another priority.
func (c *Caller) Move(ctx context.Context, r MoveRequest, options ...Option) (Waiter, error) {
	return send[Waiter](ctx, c, request{method: "POST", path: "/v1/move", body: r, options: options})
}

// Ask sends whoever holds a resource a message, and returns the lease of the one asked.
func (c *Caller) Ask(ctx context.Context, r AskRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/ask", body: r, options: options})
}

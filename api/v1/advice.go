package v1

import "context"

// A Usual is what was learned from the last leases on a resource, and the last waits for it.
type Usual struct {
	Holds   int      `json:"holds"` // leases that ended; at most the last 64
	HoldP50 Duration `json:"hold_p50,omitzero"`
	HoldP95 Duration `json:"hold_p95,omitzero"`
	Unclean int      `json:"unclean"` // how many of them ended uncleanly
	Waits   int      `json:"waits"`   // waits that were granted; at most the last 64
	WaitP50 Duration `json:"wait_p50,omitzero"`
	WaitP95 Duration `json:"wait_p95,omitzero"`
	Queue   int      `json:"queue,omitempty"` // how many usually wait
}

// An Advice is a suggested TTL for a resource, from what was learned about it.
type Advice struct {
	Namespace string   `json:"namespace"`
	Resource  string   `json:"resource"`
	TTL       Duration `json:"ttl"`
	Learned   bool     `json:"learned"` // false: too little is known, and ttl is the default

	// With learned: the least that survives the usual pauses, the cheapest, and the most that
	// waiters should have to wait for a holder that died.
	Least    Duration `json:"least,omitzero"`
	Cheapest Duration `json:"cheapest,omitzero"`
	Most     Duration `json:"most,omitzero"`

	Renewals int      `json:"renewals"`  // in one TTL
	Interval Duration `json:"interval"`  // between two renewals
	TakeOver Duration `json:"take_over"` // from a holder's death to the end of its lease, on average
	Grace    Duration `json:"grace,omitzero"`
	Usual    *Usual   `json:"usual,omitempty"`
	Reasons  []string `json:"reasons"` // the reasons, a sentence each
}

// Advice returns a suggested TTL for a resource.
func (c *Caller) Advice(ctx context.Context, path string) (Advice, error) {
	return send[Advice](ctx, c, request{method: "GET", path: "/v1/advice/" + escapePath(path)})
}

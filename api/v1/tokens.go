package v1

import "context"

// Tokens says how far the tokens of a namespace have come.
type Tokens struct {
	Namespace string `json:"namespace"`
	Newest    uint64 `json:"newest"` // the token of every later grant is larger
	Raised    bool   `json:"raised"` // by this request; false: they were above already
}

// A RaiseTokensRequest makes the tokens of a namespace go on above one that was seen elsewhere.
type RaiseTokensRequest struct {
	Above  uint64 `json:"above"` // the largest token that was seen
	By     string `json:"by,omitempty"`
	Reason string `json:"reason"` // needed; it is kept in the audit
}

// RaiseTokens makes the tokens of a namespace go on above one that was seen elsewhere. It is idempotent:
// tokens only grow, and those that are above it already stay as they are.
func (c *Caller) RaiseTokens(ctx context.Context, r RaiseTokensRequest) (Tokens, error) {
	return send[Tokens](ctx, c, request{method: "POST", path: "/v1/tokens/raise", body: r, idempotent: true})
}

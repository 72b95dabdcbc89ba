package client

import "context"

// holdKey is the key of a context's hold.
type holdKey struct{}

// A holdContext ends with a hold. Its Err reads the clock, because after a pause no timer has
// run yet.
type holdContext struct {
	context.Context
	hold *Hold
}

func (c *holdContext) Err() error {
	c.hold.check()
	return c.Context.Err()
}

func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c.hold
	}
	return c.Context.Value(key)
}

// contextUnder returns a context that ends with the hold or with parent, whichever is first.
func (h *Hold) contextUnder(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if lost := h.onLoss(cancel); lost != nil {
		cancel(lost)
	}
	return &holdContext{ctx, h}
}

// onLoss has cancel called when the hold is lost. If it is lost already, onLoss returns how.
func (h *Hold) onLoss(cancel context.CancelCauseFunc) *LostError {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := h.lost.Load()
	if lost == nil {
		h.cancels = append(h.cancels, cancel)
	}
	return lost
}

// HoldFrom returns the hold that a context belongs to: that of Hold.Context, or of the context
// that Do passes to its function.
func HoldFrom(ctx context.Context) (*Hold, bool) {
	h, ok := ctx.Value(holdKey{}).(*Hold)
	return h, ok
}

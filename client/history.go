package client

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// An id that a server no longer knows may have ended in several ways, or only have been changed.
// The history of the resource says which. It is asked only then, and its answer only improves an
// error message or finds a new id; no deadline depends on it.

// ending returns the event that ended a lease, or the wait for it; nil if the history does not
// have it.
func (c *Client) ending(ctx context.Context, resource, id string) *leasehold.Event {
	for _, e := range slices.Backward(c.history(ctx, resource)) {
		if e.ID == id && (e.Kind == leasehold.Ended || e.Kind == leasehold.Left) {
			return &e
		}
	}
	return nil
}

// history returns the newest events of a resource, newest last; none if the store has none, or does
// not answer.
func (c *Client) history(ctx context.Context, resource string) []leasehold.Event {
	historian, ok := c.store.(store.Historian)
	if !ok {
		return nil
	}
	var events []leasehold.Event
	_ = once(ctx, 5*time.Second, func(ctx context.Context) (err error) {
		events, err = historian.History(ctx, resource)
		return err
	})
	return events
}

// whyGone returns why a server no longer knows the lease's id; nil if the lease only has another
// id.
func (h *Hold) whyGone(ctx context.Context) *LostError {
	id, token := h.ID(), leasehold.Token(h.token.Load())
	taken, known := "", false
	for _, e := range slices.Backward(h.session.client.history(ctx, h.Resource())) {
		switch {
		case e.ID == id && e.Kind == leasehold.Ended:
			return &LostError{How: e.How, By: e.By, Reason: e.Reason}
		case e.Kind != leasehold.Changed || known:
		case e.Token == token && e.ID == id:
			known = true // older events do not matter
		case e.Token == token:
			h.session.followRename(e)
			return nil
		case e.Token > token && e.Session == h.session.id:
			taken = e.Holder // probably ours: nothing else explains the end of this id
		}
	}
	if taken != "" {
		return &LostError{How: leasehold.IDChanged, By: taken}
	}
	if h.session.local {
		return &LostError{How: leasehold.ByTTL, Reason: "the store does not know the lease"}
	}
	return &LostError{How: leasehold.SessionClosed, Reason: "the server does not know the lease"}
}

// currentID returns the id that a lease has now if it was changed from another; empty if it was
// not.
func (h *Hold) currentID(ctx context.Context, id string) string {
	for _, e := range slices.Backward(h.session.client.history(ctx, h.Resource())) {
		if e.Token != leasehold.Token(h.token.Load()) {
			continue
		}
		if e.Kind == leasehold.Changed && e.ID != id {
			return e.ID
		}
		return "" // its newest event: the id did not change
	}
	return ""
}

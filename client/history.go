package client

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// ending looks up how a lease, or the wait for it, ended; nil if nobody knows.
func (c *Client) ending(ctx context.Context, resource, id string) *v1.Event {
	for _, e := range slices.Backward(c.history(ctx, resource)) {
		if e.ID == id && (e.Kind == leasehold.Ended.String() || e.Kind == leasehold.Left.String()) {
			return &e
		}
	}
	return nil
}

// history is what is known of a resource, newest last.
func (c *Client) history(ctx context.Context, resource string) []v1.Event {
	var page v1.EventPage
	_ = c.servers.Once(ctx, 5*time.Second, func(ctx context.Context, w *v1.Caller) (err error) {
		page, err = w.History(ctx, v1.HistoryQuery{Resource: resource, Limit: v1.MaxLimit})
		return err
	})
	return page.Items
}

// howGone finds out why a server does not know the lease any more; nil if it only has
// another id.
func (h *Hold) howGone(ctx context.Context) *LostError {
	id, token := h.ID(), h.token.Load()
	taken, known := "", false
	for _, e := range slices.Backward(h.session.client.history(ctx, h.resource)) {
		switch {
		case e.ID == id && e.Kind == leasehold.Ended.String():
			return &LostError{How: howOf(e.How), By: e.By, Reason: e.Reason}
		case e.Kind != leasehold.Changed.String() || known:
		case e.Token == token && e.ID == id:
			known = true // what was before is history
		case e.Token == token:
			h.session.renamed(e)
			return nil
		case e.Token > token && e.Session == h.session.id:
			taken = e.Holder // it may be the one: nothing else ended this id
		}
	}
	if taken != "" {
		return &LostError{How: leasehold.IDChanged, By: taken}
	}
	return &LostError{How: leasehold.SessionClosed, Reason: "the server does not know the lease"}
}

// movedTo returns the id under which the lease goes on that had another one; empty if it
// does not.
func (h *Hold) movedTo(ctx context.Context, id string) string {
	for _, e := range slices.Backward(h.session.client.history(ctx, h.resource)) {
		if e.Token != h.token.Load() {
			continue
		}
		if e.Kind == leasehold.Changed.String() && e.ID != id {
			return e.ID
		}
		return "" // the last that is known of it
	}
	return ""
}

// howOf reads how something ended from its name in an event.
func howOf(name string) leasehold.How {
	for h := leasehold.Released; h <= leasehold.WaitOver; h++ {
		if h.String() == name {
			return h
		}
	}
	return 0
}

package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Change hands the lease to another holder, or to another id, or both, without a gap.
// A new holder has a new token; a new id alone keeps it. The Hold goes on under what was
// changed.
func (h *Hold) Change(ctx context.Context, to Change) error {
	if err := h.Err(); err != nil {
		return err
	}
	if to.Holder == "" && to.ID == "" {
		return &leasehold.Error{Code: leasehold.Invalid, Message: "a change needs another holder, another id, or both"}
	}
	h.changing(true)
	defer h.changing(false)
	id := h.ID()
	defer func() {
		if h.ID() != to.ID || h.Err() != nil {
			h.session.remove(to.ID)
		}
	}()
	if to.ID != "" && !h.session.add(h, to.ID) { // so that what happens to it is heard
		return h.Err()
	}
	var lease v1.Lease
	sent := h.session.clock() // the first attempt: the answer may be one to any of them
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := h.session.client.servers.Retry(ctx, h.session.attemptLimit(), func(ctx context.Context, w *v1.Caller) (err error) {
		lease, err = w.Change(ctx, v1.ChangeRequest{ID: id, Holder: to.Holder, NewID: to.ID})
		return err
	})
	switch {
	case err == nil:
		h.changed(sent, lease)
		return h.Err()
	case isGone(err):
		if why := h.whyGone(ctx); why != nil {
			h.lose(why)
			return h.Err()
		}
		return err // somebody else gave it another id meanwhile
	case v1.Transient(err):
		// Nobody can tell under which id or token it goes on: it is not to be relied on.
		h.lose(&LostError{How: leasehold.IDChanged, Reason: err.Error()})
		h.session.releaseLater(id)
		if to.ID != "" {
			h.session.releaseLater(to.ID)
		}
	}
	return err
}

// A Change is what a lease is changed to. What is empty stays as it is.
type Change struct {
	Holder string
	ID     string
}

func (h *Hold) changing(is bool) {
	h.mu.Lock()
	h.extraLocked().changing = is
	h.mu.Unlock()
}

// changed takes the new id, holder and token. The answer counts what others did before, so it
// has to be taken whole: a break that was announced is not told of again.
func (h *Hold) changed(sent time.Duration, lease v1.Lease) {
	h.mu.Lock()
	old := h.id
	h.id, h.holder = lease.ID, lease.Holder
	h.mu.Unlock()
	h.token.Store(lease.Token)
	if enough := h.applyLease(sent, lease); !enough || lease.State == leasehold.Breaking.String() {
		h.session.queueRecheck(h) // an older look may still be on its way
	}
	if old != lease.ID {
		h.session.remove(old)
	}
}

// HandOver gives the resource to a holder that waits for it, before all others and
// without a gap: it is granted in the step in which it is released. If that holder does
// not wait, the error is a leasehold.ErrNotFound and the hold goes on.
func (h *Hold) HandOver(ctx context.Context, holder string) error {
	if err := h.Err(); err != nil {
		return err
	}
	c := h.session.client
	waiter, err := c.waiter(ctx, h.resource, holder)
	if err != nil {
		return err
	}
	err = c.servers.Retry(ctx, h.session.attemptLimit(), func(ctx context.Context, w *v1.Caller) error {
		moved, err := w.Move(ctx, v1.MoveRequest{ID: waiter.ID, Priority: leasehold.MaxPriority, By: h.holder, Reason: "hand-over"})
		waiter.Position = moved.Position
		return err
	})
	switch {
	case isGone(err):
		return &leasehold.Error{Code: leasehold.NotFound, Message: holder + " does not wait for " + h.resource + " any more"}
	case err != nil:
		return err
	case waiter.Position > 1:
		return &leasehold.Error{Code: leasehold.Refused, Message: "others with the largest priority wait for " + h.resource + " before " + holder}
	}
	return h.Release(ctx)
}

// waiter finds who waits under a name.
func (c *Client) waiter(ctx context.Context, resource, holder string) (v1.Waiter, error) {
	var r v1.Resource
	err := c.servers.Retry(ctx, 5*time.Second, func(ctx context.Context, w *v1.Caller) (err error) {
		r, err = w.Resource(ctx, resource, v1.MaxLimit)
		return err
	})
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return v1.Waiter{}, err
	}
	for _, w := range r.Queue {
		if w.Holder == holder {
			return w, nil
		}
	}
	return v1.Waiter{}, &leasehold.Error{Code: leasehold.NotFound, Message: holder + " does not wait for " + resource}
}

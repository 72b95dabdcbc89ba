package client

import (
	"context"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Change gives the lease another holder, another id, or both, without a gap. A new holder gets a
// new token; with a new id alone the token stays. The Hold goes on with what was changed.
func (h *Hold) Change(ctx context.Context, to Change) error {
	if err := h.Err(); err != nil {
		return err
	}
	if to.Holder == "" && to.ID == "" {
		return &leasehold.Error{Code: leasehold.Invalid,
			Message: "nothing to change: name another holder, another id, or both"}
	}
	changer, err := power[store.Changer](h.session.client, store.ChangePower)
	if err != nil {
		return err
	}
	h.changing(true)
	defer h.changing(false)
	id := h.ID()
	defer func() {
		if h.ID() != to.ID || h.Err() != nil {
			h.session.remove(to.ID)
		}
	}()
	if to.ID != "" && !h.session.add(h, to.ID) { // from now on events may name it
		return h.Err()
	}
	var lease store.Grant
	sent := h.session.clock() // before the first attempt: the answer may belong to any of them
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = h.session.client.retry(ctx, h.session.attemptLimit(), func(ctx context.Context) (err error) {
		lease, err = changer.Change(ctx, store.Ref{Resource: h.Resource(), ID: id}, to.Holder, to.ID)
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
		return err // somebody else changed the id meanwhile
	case store.Transient(err):
		// The id and the token that it has now are unknown, so it cannot be relied on.
		h.lose(&LostError{How: leasehold.IDChanged, Reason: err.Error()})
		h.session.releaseLater(store.Ref{Resource: h.Resource(), ID: id})
		if to.ID != "" {
			h.session.releaseLater(store.Ref{Resource: h.Resource(), ID: to.ID})
		}
	}
	return err
}

// A Change is what to change of a lease. Empty fields stay as they are.
type Change struct {
	Holder string
	ID     string
}

// changing notes whether a change is under way: the lease may then have another id or token at
// any moment.
func (h *Hold) changing(is bool) {
	h.mu.Lock()
	h.extraLocked().changing = is
	h.mu.Unlock()
}

// changed applies the answer to a change. The answer counts all interventions before it, so all
// of it has to be applied: a break that it shows is not announced again.
func (h *Hold) changed(sent time.Duration, lease store.Grant) {
	h.mu.Lock()
	old := h.id
	h.id, h.holder = lease.ID, lease.Holder
	h.mu.Unlock()
	h.token.Store(uint64(lease.Token))
	h.floor.Store(uint64(lease.Floor))
	if enough := h.applyLease(sent, lease); !enough || lease.State == leasehold.Breaking {
		h.session.queueRecheck(h) // an older recheck may still be under way
	}
	if old != lease.ID {
		h.session.remove(old)
	}
}

// HandOver gives the resource to a holder that waits for it, before all other waiters and
// without a gap: it is granted in the step that releases it. If that holder does not wait, the
// error is a leasehold.ErrNotFound and the hold goes on.
func (h *Hold) HandOver(ctx context.Context, holder string) error {
	if err := h.Err(); err != nil {
		return err
	}
	c := h.session.client
	mover, err := power[store.Mover](c, store.MovePower)
	if err != nil {
		return err
	}
	waiter, err := c.waiter(ctx, h.Resource(), holder)
	if err != nil {
		return err
	}
	// Move and release are two requests: the waiter is first in line before the resource becomes
	// free, so nobody can slip in between.
	ref := store.Ref{Resource: h.Resource(), ID: waiter.ID}
	err = c.retry(ctx, h.session.attemptLimit(), func(ctx context.Context) (err error) {
		waiter.Position, err = mover.Move(ctx, ref, leasehold.MaxPriority, h.holder, "hand-over")
		return err
	})
	switch {
	case isGone(err):
		return &leasehold.Error{Code: leasehold.NotFound, Message: holder + " no longer waits for " + h.Resource()}
	case err != nil:
		return err
	case waiter.Position > 1:
		return &leasehold.Error{Code: leasehold.Refused,
			Message: "others with the largest priority wait for " + h.Resource() + " before " + holder}
	}
	return h.Release(ctx)
}

// waiter returns the waiter with this holder's name.
func (c *Client) waiter(ctx context.Context, resource, holder string) (leasehold.Waiter, error) {
	var r store.Resource
	err := c.retry(ctx, 5*time.Second, func(ctx context.Context) (err error) {
		r, err = c.store.Read(ctx, resource)
		return err
	})
	if err != nil {
		return leasehold.Waiter{}, err
	}
	for _, w := range r.Queue {
		if w.Holder == holder {
			return w, nil
		}
	}
	return leasehold.Waiter{}, &leasehold.Error{Code: leasehold.NotFound,
		Message: holder + " does not wait for " + resource}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
)

// Do acquires a resource, calls fn, and releases the resource after fn has returned. It never
// releases while fn runs: a lease that is given back while its work goes on protects nothing.
//
// The context of fn ends with ctx or with the hold, whichever is first; context.Cause says
// which. If the hold was lost before fn returned, Do returns how, even if fn returned nil: some
// of its work was not protected.
func (c *Client) Do(
	ctx context.Context, resource string, fn func(ctx context.Context, h *Hold) error, options ...Option,
) error {
	h, err := c.Acquire(ctx, resource, options...)
	if err != nil {
		return err
	}
	defer h.releaseOrLog()
	err = fn(h.contextUnder(ctx), h)
	if lost := h.Err(); lost != nil && !errors.Is(err, ErrLost) {
		return errors.Join(err, lost)
	}
	return err
}

// Acquire acquires a resource. It waits until the resource is granted, or until ctx or Wait end.
// Cancelling ctx later does not affect the hold, whose Context has only its values.
func (c *Client) Acquire(ctx context.Context, resource string, options ...Option) (*Hold, error) {
	return firstHold(c.acquire(ctx, c.options([]Item{{Resource: resource}}, asLongAsContext, options)))
}

// TryAcquire acquires a resource if it is free. If somebody else holds it, the error is an
// ErrHeld that says who.
func (c *Client) TryAcquire(ctx context.Context, resource string, options ...Option) (*Hold, error) {
	o := c.options([]Item{{Resource: resource}}, 0, options)
	// An option Wait is overruled: TryAcquire promises not to wait.
	o.wait = 0
	limited := limit.After(ctx, callTimeout)
	defer limited.Stop()
	return firstHold(c.acquire(limited, o))
}

// An Item is one of several resources that are acquired at once.
type Item struct {
	Resource string
	Shared   bool // one slot, of however many there are
	Slots    int  // how many slots; 0: all of them, exclusively
	Capacity int  // with Slots: how many there are, if no definition says
}

// All returns items to acquire exclusively.
func All(resources ...string) []Item {
	items := make([]Item, len(resources))
	for i, r := range resources {
		items[i].Resource = r
	}
	return items
}

// AcquireAll acquires several resources at the same moment, all of them or none, and returns a
// hold for each, in their order. Programs need not agree on an order: two that want the same
// resources do not deadlock. Once granted, the holds are independent.
func (c *Client) AcquireAll(ctx context.Context, items []Item, options ...Option) ([]*Hold, error) {
	if len(items) == 0 {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: "no resource to acquire: name one or more"}
	}
	return c.acquire(ctx, c.options(items, asLongAsContext, options))
}

// firstHold returns the hold of an acquire of one resource.
func firstHold(holds []*Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return holds[0], nil
}

// acquire finds a session and acquires in it. It starts again in another session if the first
// one ended or is full.
func (c *Client) acquire(ctx context.Context, o options) ([]*Hold, error) {
	if o.noSlots {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("%d slots of %s are asked for: "+
			"ask for 1 or more, or leave Slots out to acquire all of it", o.items[0].Slots, o.items[0].Resource)}
	}
	if err := c.checkPowers(o); err != nil {
		return nil, err
	}
	if o.learned {
		c.learnTTL(ctx, &o)
	}
	// A wait is counted from here over all sessions, so that trying again does not make it longer.
	var began time.Duration
	if o.wait != 0 {
		began = c.clock.Now()
	}
	for n := 0; ; n++ {
		s, err := c.join(ctx, o)
		if err != nil {
			return nil, err
		}
		h, err := s.acquire(ctx, o, began)
		// After it holds something: a session that is neither entered nor holding may be closed as
		// unused.
		s.leave()
		if err == nil {
			return h, nil
		}
		// Its one hold will never come, and nothing else would close it before it expires. A local one is
		// closed once its id is released.
		if s.private && !s.local {
			c.background(func(ctx context.Context) { _ = s.close(ctx) })
		}
		switch {
		case !errors.Is(err, errRetry) && !s.filled(err):
			return nil, err
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s was not acquired: %w", o.items[0].Resource, context.Cause(ctx))
		case o.session != nil && !o.session.alive():
			return nil, o.session.lostError(leasehold.SessionClosed)
		case n > 0:
			backoff.Sleep(ctx, n) // once is nothing unusual
		}
	}
}

// errRetry is the error of an acquire that failed for a reason that another id, or another
// session, does not have.
var errRetry = errors.New("acquire again under another id")

package cli

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
)

// Wanted is how much of a resource is asked for.
type Wanted struct {
	Shared   bool
	Slots    Slots
	Capacity int // how many slots there are, if the person says
}

// Of returns how many slots of a resource to ask for, out of how many; 0 or v1.AllSlots: all of
// them, exclusively.
//
// Who says nothing about slots wants one of a pool and not all of it. The capacity is that of the
// definition that was looked at: the server refuses another one, so a definition that changes
// meanwhile does not turn the one slot into something else.
func (w Wanted) Of(ctx context.Context, c *Conn, resource string) (slots, capacity int, err error) {
	if w.Shared || w.Slots.N > 0 || w.Capacity != 0 {
		return w.Slots.N, w.Capacity, nil
	}
	d, err := c.Definition(ctx, resource)
	switch n := max(d.Capacity, len(d.Units)); {
	case errors.Is(err, leasehold.ErrDenied):
		return 0, 0, unseen(ctx, c, resource, err)
	// What is wrong with a name is for the acquire to say.
	case err != nil && !errors.Is(err, leasehold.ErrNotFound) && !errors.Is(err, leasehold.ErrInvalid):
		return 0, 0, err
	case w.Slots.Given:
		return int(v1.AllSlots), 0, nil
	case n < 2 && len(d.Units) == 0:
		return ofHosts(ctx, c, resource), 0, nil
	default:
		return 1, n, nil
	}
}

// ofHosts returns 1 for a pool whose hosts say which units it has, and 0 for what is no such pool. Whatever else goes
// wrong is for the acquire to say.
func ofHosts(ctx context.Context, c *Conn, resource string) int {
	if _, err := pools.Get(ctx, c.Caller, resource, pools.Query{Limit: 1, Queue: 1}); err != nil {
		return 0
	}
	return 1
}

// unseen returns why nothing can be acquired whose definition may not be read; nil: the acquire will say so. Who may
// acquire it has to say how much, rather than get all of a pool.
func unseen(ctx context.Context, c *Conn, resource string, denied error) error {
	can, err := c.CanI(ctx, v1.CanIQuery{Verb: "acquire", Path: resource})
	switch {
	case err != nil:
		return denied
	case !can.Allowed:
		return nil
	}
	return Hint(denied, "say how much of it you want with --slots, for which nothing has to be read")
}

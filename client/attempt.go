package client

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/store"
)

// once makes a single attempt at something, which must be over within a time.
func once(ctx context.Context, within time.Duration, attempt func(context.Context) error) error {
	limited := limit.AfterCause(ctx, within, store.ErrLimit)
	defer limited.Stop()
	return attempt(limited)
}

// retry attempts something idempotent until the store answers, with yes or no, or ctx ends.
func (c *Client) retry(ctx context.Context, within time.Duration, attempt func(context.Context) error) error {
	for n := 1; ; n++ {
		err := once(ctx, within, attempt)
		if !store.Transient(err) || ctx.Err() != nil || !c.pause(ctx, n) {
			return err
		}
	}
}

// pause pauses after the n-th failed attempt in a row. Where there are several servers it does so
// only after a round of all of them: another server is probably fine. It reports whether ctx is
// still alive.
func (c *Client) pause(ctx context.Context, n int) bool {
	round := 1
	if s, ok := c.store.(interface{ Endpoints() int }); ok {
		round = s.Endpoints()
	}
	if n%round != 0 {
		return ctx.Err() == nil
	}
	return backoff.Sleep(ctx, n/round)
}

// power returns the part of the store that has a power, or an error that names the stores which have
// it.
func power[T any](c *Client, p store.Power) (T, error) {
	s, ok := c.store.(T)
	if ok {
		return s, nil
	}
	return s, c.lacks(p)
}

// lacks returns the error of a store without the interface of a power. A wrapper may list the power all
// the same, since its features are those of the store in it.
func (c *Client) lacks(p store.Power) error {
	if err := store.Require(c.store, p); err != nil {
		return err
	}
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
		"%s lists %s among its powers, but does not implement them", c.store.Features().Store, p)}
}

package client

import (
	"context"

	"github.com/leasehold/leasehold/store"
)

// A Semaphore is a resource with several slots.
type Semaphore struct {
	client   *Client
	resource string
	of       int
	options  []Option
}

// Semaphore returns a semaphore on a resource with this number of slots, on which all who share
// it must agree. 0: the number that is defined, or that the other holders gave.
func (c *Client) Semaphore(resource string, slots int, options ...Option) *Semaphore {
	return &Semaphore{c, resource, slots, options}
}

// Acquire waits for n slots. Waiters that need fewer slots do not overtake it.
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...Option) (*Hold, error) {
	return s.client.Acquire(ctx, s.resource, s.with(n, options)...)
}

// TryAcquire acquires n slots if they are free.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, options ...Option) (*Hold, error) {
	return s.client.TryAcquire(ctx, s.resource, s.with(n, options)...)
}

func (s *Semaphore) with(n int, more []Option) []Option {
	all := append([]Option{Slots(n, s.of)}, s.options...)
	return append(all, more...)
}

// A Pool is a resource whose slots have names: devices, ports, accounts. Hold.Units says which
// were granted: those that the holder had last, if they are free.
type Pool struct{ Semaphore }

// Pool returns a pool whose units are defined, by Define or by an operator.
func (c *Client) Pool(resource string, options ...Option) *Pool {
	return &Pool{Semaphore{c, resource, 0, options}}
}

// Define names the units of the pool, and keeps the rest of its definition. Holders of units that
// are no longer named keep them until they release them.
func (p *Pool) Define(ctx context.Context, units ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	definer, err := power[store.Definer](p.client, store.DefinitionPower)
	if err != nil {
		return err
	}
	key := newID() // a retry must not undo what somebody else changed since
	return p.client.retry(ctx, callTimeout/3, func(ctx context.Context) error {
		return definer.DefineUnits(ctx, p.resource, units, p.client.config.Holder, key)
	})
}

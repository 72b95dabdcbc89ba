package client

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Get returns the value of a record. If there is no such record, the error is a
// leasehold.ErrNotFound. A large value is a leasehold.ErrRefused: read it with v1.Caller.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	r, err := c.record(ctx, path)
	return r.Value, err
}

func (c *Client) record(ctx context.Context, path string) (r store.Record, err error) {
	records, err := power[store.Records](c, store.RecordPower)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.retry(ctx, callTimeout/3, func(ctx context.Context) (err error) {
		r, err = records.Get(ctx, path)
		return err
	})
	return r, err
}

// Put writes a record that ends with the session, such as the presence of a service.
func (s *Session) Put(ctx context.Context, path string, value []byte) error {
	if !s.alive() {
		return s.lostError(leasehold.SessionClosed)
	}
	return s.client.put(ctx, store.PutRequest{Path: path, Value: value, Session: s.id})
}

// Put writes a record under the fence of the hold: the server checks the lease in the same step.
// If the lease is lost, the error is an ErrLost.
func (h *Hold) Put(ctx context.Context, path string, value []byte) error {
	return h.put(ctx, store.PutRequest{Path: path, Value: value})
}

func (h *Hold) put(ctx context.Context, r store.PutRequest) error {
	if err := h.Err(); err != nil {
		return err
	}
	r.Fence = h.fence()
	err := h.session.client.put(ctx, r)
	if lost := h.Err(); lost != nil && errors.Is(err, ErrLost) {
		return lost
	}
	return err
}

// put is idempotent: repeated, it writes the same value under the same fence.
func (c *Client) put(ctx context.Context, r store.PutRequest) error {
	records, err := power[store.Records](c, store.RecordPower)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.retry(ctx, callTimeout/3, func(ctx context.Context) error { return records.Put(ctx, r) })
}

// fence returns the lease as what a write is fenced by.
func (h *Hold) fence() store.Fence {
	return store.Fence{ID: h.ID(), Token: leasehold.Token(h.token.Load())}
}

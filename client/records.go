package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Get returns the value of a record. If there is no such record, the error is a
// leasehold.ErrNotFound. A large value is a leasehold.ErrRefused: read it with v1.Caller.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	r, err := c.record(ctx, path)
	if err == nil && r.Large != nil {
		return nil, &leasehold.Error{Code: leasehold.Refused,
			Message: fmt.Sprintf("%s has a large value of %d bytes: read it with v1.Caller.OpenRecord", path,
				r.Large.Size)}
	}
	return r.Value, err
}

func (c *Client) record(ctx context.Context, path string) (r v1.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.servers.Retry(ctx, callTimeout/3, func(ctx context.Context, w *v1.Caller) (err error) {
		r, err = w.Record(ctx, path, 0)
		return err
	})
	return r, err
}

// Put writes a record that ends with the session, such as the presence of a service.
func (s *Session) Put(ctx context.Context, path string, value []byte) error {
	if !s.alive() {
		return s.lostError(leasehold.SessionClosed)
	}
	return s.client.put(ctx, v1.PutRequest{Path: path, Value: value, Session: s.id})
}

// Put writes a record under the fence of the hold: the server checks the lease in the same step.
// If the lease is lost, the error is an ErrLost.
func (h *Hold) Put(ctx context.Context, path string, value []byte) error {
	return h.put(ctx, v1.PutRequest{Path: path, Value: value})
}

func (h *Hold) put(ctx context.Context, r v1.PutRequest) error {
	if err := h.Err(); err != nil {
		return err
	}
	r.Fence = v1.Fence{Lease: h.ID(), Token: h.token.Load()}
	err := h.session.client.put(ctx, r)
	if lost := h.Err(); lost != nil && errors.Is(err, ErrLost) {
		return lost
	}
	return err
}

// put is idempotent: repeated, it writes the same value under the same fence.
func (c *Client) put(ctx context.Context, r v1.PutRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.servers.Retry(ctx, callTimeout/3, func(ctx context.Context, w *v1.Caller) error {
		_, err := w.PutRecord(ctx, r)
		return err
	})
}

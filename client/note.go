package client

import (
	"context"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// noteTime is how long Note tries, unless ctx ends before.
const noteTime = 5 * time.Second

// Note says how far the work is, such as "epoch 3 of 10", in at most leasehold.MaxNote bytes, for
// people who look at the resource. It stays until the next note, and until the lease ends or gets
// another holder; an empty text takes it away. Each call is one request: call it when a step is
// done, not for every item. An error says that the note may not be seen, and nothing about the
// hold: ask Err for that. Servers below level 4 refuse it.
func (h *Hold) Note(ctx context.Context, text string) error {
	if err := h.Err(); err != nil {
		return err
	}
	return h.session.client.servers.Once(ctx, noteTime, func(ctx context.Context, w *v1.Caller) error {
		_, err := w.Renew(ctx, v1.RenewRequest{ID: h.ID(), Note: &text})
		return err
	})
}

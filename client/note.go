package client

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
)

// noteTime is how long Note tries, unless ctx ends before.
const noteTime = 5 * time.Second

// Note says how far the work is, such as "epoch 3 of 10", in at most leasehold.MaxNote bytes, for
// people who look at the resource. It stays until the next note, and until the lease ends or gets
// another holder; an empty text takes it away. Each call is one request: call it when a step is
// done, not for every item. An error says that the note may not be seen, and nothing about the
// hold: ask Err for that.
func (h *Hold) Note(ctx context.Context, text string) error {
	if err := h.Err(); err != nil {
		return err
	}
	noter, err := power[store.Noter](h.session.client, store.NotePower)
	if err != nil {
		return err
	}
	return once(ctx, noteTime, func(ctx context.Context) error { return noter.Note(ctx, h.ref(), text) })
}

package client

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Release gives the resource back. Call it when the work has ended, not when it was
// told to end. It may be called again, and does nothing then.
//
// The error is an ErrLost if the hold had been lost before: some of the work was not
// protected. It is another one if no server could be told until ctx ended, or for 15 s;
// the client goes on trying.
func (h *Hold) Release(ctx context.Context) error {
	earlier := h.lose(&LostError{How: leasehold.Released})
	if earlier != nil && errors.Is(earlier, ErrReleased) {
		earlier = nil
	}
	h.mu.Lock()
	id, freed := h.id, h.freed
	h.mu.Unlock()
	if !freed {
		if err := h.release(ctx, id, earlier); err != nil {
			return err
		}
		h.mu.Lock()
		h.freed = true
		h.mu.Unlock()
	}
	if earlier != nil {
		return earlier
	}
	return nil
}

// giveBack is a release that nobody waits for longer than it takes.
func (h *Hold) giveBack() {
	if err := h.Release(h.values); err != nil && !errors.Is(err, ErrLost) {
		h.session.client.log.Warn("a lease could not be released yet", "resource", h.resource, "err", err)
	}
}

// release tells a server that a lease is not needed any more. A lease that was lost is
// released too, where it may still be alive: others need not wait for its end then.
func (h *Hold) release(ctx context.Context, id string, lost *LostError) error {
	s := h.session
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	send := func(ctx context.Context, w *v1.Caller) error {
		r := v1.ReleaseRequest{ID: id}
		if w.Level() >= v1.LevelMany {
			r.Session = s.id // else it would count as what others did
		}
		return w.Release(ctx, r)
	}
	if lost != nil {
		if lost.How.Clean() || lost.How == leasehold.ByBreak {
			return nil // the server itself said that it ended
		}
		_ = s.client.servers.Once(ctx, s.attempt(), send)
		return nil
	}
	err := s.client.servers.Retry(ctx, s.attempt(), send)
	for isGone(err) {
		// Somebody may have given it another id, and we have not heard of that yet.
		if id = h.movedTo(ctx, id); id == "" {
			break
		}
		err = s.client.servers.Retry(ctx, s.attempt(), send)
	}
	if err == nil || isGone(err) {
		if s.alone {
			s.client.background(func(ctx context.Context) { _ = s.close(ctx) })
		}
		return nil
	}
	s.owe(id) // often it is only ctx that has ended
	return err
}

package client

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/store"
)

// Release gives the resource back. Call it when the work has ended, not when it was told to end.
// Further calls do nothing.
//
// The error is an ErrLost if the hold was lost before: some of the work was not protected. Any
// other error means that no server could be reached until ctx ended, or for 15 s; the client
// goes on trying in the background.
func (h *Hold) Release(ctx context.Context) error {
	if h.session.local {
		ref := h.ref()
		h.session.beginRelease(ref)
		defer h.session.endRelease(ref)
	}
	// The hold ends here before the server is asked: from this line on nobody may rely on it.
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

// releaseOrLog releases the hold where no caller could handle an error.
func (h *Hold) releaseOrLog() {
	if err := h.Release(h.values); err != nil && !errors.Is(err, ErrLost) {
		h.session.client.log.Warn("a lease could not be released yet", "resource", h.Resource(), "err", err)
	}
}

// release releases the lease on a server. A lost lease is released too, in case the server still
// has it: others need not wait for its end then.
func (h *Hold) release(ctx context.Context, id string, lost *LostError) error {
	s := h.session
	limited := limit.After(ctx, callTimeout)
	defer limited.Stop()
	ctx = limited
	send := func(ctx context.Context) error {
		ref := store.Ref{Resource: h.Resource(), ID: id}
		return s.client.store.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{ref}, Session: s.storeID()})
	}
	if lost != nil {
		if lost.How.Clean() || lost.How == leasehold.ByBreak {
			return nil // the server has ended it already
		}
		// Once is enough: it is lost anyway, and this only saves others a wait.
		_ = once(ctx, s.attemptLimit(), send)
		return nil
	}
	err := s.client.retry(ctx, s.attemptLimit(), send)
	for isGone(err) {
		// Its id may have been changed, and the event is still on its way.
		if id = h.currentID(ctx, id); id == "" {
			break
		}
		err = s.client.retry(ctx, s.attemptLimit(), send)
	}
	if err == nil || isGone(err) {
		if s.private {
			s.client.background(func(ctx context.Context) { _ = s.close(ctx) })
		}
		return nil
	}
	s.releaseLater(store.Ref{Resource: h.Resource(), ID: id}) // often only ctx has ended
	return err
}

package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Renew renews leases.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	renewals := make([]store.Renewal, len(leases))
	for i, ref := range leases {
		answer, err := s.do(ctx, &core.Renew{Namespace: s.namespace, ID: ref.ID})
		switch {
		case errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound):
			renewals[i].Ended, err = s.ending(ctx, ref)
			renewals[i].Err = err
		case err != nil && store.Transient(err):
			return nil, err
		case err != nil:
			renewals[i].Err = err
		case answer.Waiter != nil:
			renewals[i].Err = s.stillWaits(ctx, answer.Waiter)
		default:
			renewals[i].Grant = granted(answer)
		}
	}
	return renewals, nil
}

// stillWaits answers the renewal of a waiter. It counts as a sign of life, but nothing is held.
func (s *Store) stillWaits(ctx context.Context, w *leasehold.Waiter) error {
	var held leasehold.Error
	err := s.read(ctx, func(v core.View) { held = *v.Held(s.namespace, w.Resource) })
	if err != nil {
		return err
	}
	held.Position = w.Position
	return &held
}

// maxLook is how many events are looked at to find the one that ended a lease, and those of a
// resource.
const maxLook = 100000

// ending finds how a lease ended. The core remembers that for each id, and history by whom.
func (s *Store) ending(ctx context.Context, ref store.Ref) (*leasehold.Ending, error) {
	ending := &leasehold.Ending{ID: ref.ID}
	var history core.History
	err := s.read(ctx, func(v core.View) {
		ending.How = v.Ended(s.namespace, ref.ID)
		history = v.History(s.namespace)
	})
	if err != nil || ending.How == 0 {
		return ending, err
	}
	events := history.All()
	for _, e := range slices.Backward(events[max(0, len(events)-maxLook):]) {
		if e.ID == ref.ID && (e.Kind == leasehold.Ended || e.Kind == leasehold.Left) {
			ending.Holder, ending.Token, ending.By, ending.Reason, ending.At = e.Holder, e.Token, e.By, e.Reason, e.At
			break
		}
	}
	return ending, nil
}

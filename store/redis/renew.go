package redis

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// chunk is how many leases one script touches. A hundred keep the server busy for about a millisecond,
// and nobody else is served meanwhile.
const chunk = 100

// Renew renews leases.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := checkNames(leases...); err != nil {
		return nil, err
	}
	renewals := make([]store.Renewal, 0, len(leases))
	for part := range slices.Chunk(leases, chunk) {
		renewed, err := s.renew(ctx, part)
		if err != nil && len(leases) <= chunk {
			return nil, err
		}
		for i := range part {
			if err != nil {
				renewals = append(renewals, store.Renewal{Err: err})
			} else {
				renewals = append(renewals, renewed[i])
			}
		}
	}
	return renewals, nil
}

func (s *Store) renew(ctx context.Context, leases []store.Ref) ([]store.Renewal, error) {
	keys, ids := make([]string, 0, 2*len(leases)), make([]string, 0, len(leases))
	for _, l := range leases {
		keys = append(keys, s.names.lease(l.Resource), s.names.mark(l.ID))
		ids = append(ids, l.ID)
	}
	a, err := s.call(ctx, renewScript, keys, ids...)
	if err != nil {
		return nil, err
	}
	answers := list(a.rest[0])
	if len(answers) != len(leases) {
		return nil, undecided("Redis answered for %d of %d leases", len(answers), len(leases))
	}
	renewals := make([]store.Renewal, len(leases))
	for i, m := range answers {
		parts := list(m)
		if text(parts[0]) == "renewed" {
			renewals[i].Lease = s.lease(a.now, leases[i].Resource, list(parts[1]))
			continue
		}
		e := s.ending(leases[i].ID, list(parts[1]))
		renewals[i].Ended = &e
	}
	return renewals, nil
}

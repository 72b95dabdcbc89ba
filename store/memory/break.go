package memory

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease, or a wait, as an operator.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	answer, err := s.do(ctx, &core.Break{
		Namespace: s.namespace, ID: r.ID, Period: r.Period, By: r.By, Reason: r.Reason,
	})
	if err != nil {
		return leasehold.Lease{}, err
	}
	return *answer.Lease, nil
}

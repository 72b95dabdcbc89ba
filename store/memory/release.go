package memory

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits of their holder.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	var failures []error
	for _, ref := range r.Leases {
		_, err := s.do(ctx, &core.Release{Namespace: s.namespace, ID: ref.ID, Session: r.Session, Withdraw: true})
		if err != nil && !errors.Is(err, leasehold.ErrLost) {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return failures[0]
	}
	return nil
}

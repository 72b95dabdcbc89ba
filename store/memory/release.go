package memory

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits of their holder. Without Withdraw, an id that the lease no longer
// has is Lost: the holder may look for the one that it has now.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) (first error) {
	for _, ref := range r.Leases {
		_, err := s.do(ctx, &core.Release{
			Namespace: s.namespace, ID: ref.ID, Session: r.Session, Withdraw: r.Withdraw,
		})
		if errors.Is(err, leasehold.ErrLost) && (r.Withdraw || !s.renamed(ctx, ref.ID)) {
			err = nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// renamed reports whether a lease goes on under another id.
func (s *Store) renamed(ctx context.Context, id string) (yes bool) {
	_ = s.read(ctx, func(v core.View) { yes = v.Ended(s.namespace, id) == leasehold.IDChanged })
	return yes
}

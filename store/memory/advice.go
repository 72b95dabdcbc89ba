package memory

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// AdviseTTL returns what was learned of leases of a kind.
func (s *Store) AdviseTTL(ctx context.Context, q store.AdviceQuery) (ttl time.Duration, err error) {
	kind := core.KindName(q.Labels, q.Holder)
	if kind == "" {
		return 0, nil
	}
	err = s.read(ctx, func(v core.View) { ttl = v.Kinds(s.namespace, q.Resource, kind)[0].TTL })
	return ttl, err
}

package server

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/kinds"
	"github.com/leasehold/leasehold/store"
)

// AdviseTTL returns what the server learned of leases of a kind. One that knows no kinds has no opinion.
func (s *Store) AdviseTTL(ctx context.Context, q store.AdviceQuery) (ttl time.Duration, err error) {
	query := kinds.Query{Holder: q.Holder}
	for _, label := range q.Labels {
		switch label.Key {
		case "kind":
			query.Kind = label.Value
		case "command":
			query.Command = label.Value
		}
	}
	if query.Kind == "" && query.Command == "" {
		return 0, nil
	}
	err = s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		known, err := kinds.Get(ctx, server, q.Resource, query)
		if len(known.Items) == 1 {
			ttl = time.Duration(known.Items[0].TTL)
		}
		return err
	})
	if errors.Is(err, leasehold.ErrNotFound) {
		return 0, nil
	}
	return ttl, err
}

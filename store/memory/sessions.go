package memory

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// OpenSession begins a session.
func (s *Store) OpenSession(
	ctx context.Context, id string, ttl time.Duration, labels leasehold.Labels,
) (store.SessionAnswer, error) {
	return s.session(ctx, &core.OpenSession{Namespace: s.namespace, ID: id, TTL: ttl, Labels: sorted(labels)}, 0)
}

// RenewSession renews a session and what is bound to it.
func (s *Store) RenewSession(ctx context.Context, id string, seen uint64) (store.SessionAnswer, error) {
	return s.session(ctx, &core.RenewSession{Namespace: s.namespace, ID: id}, seen)
}

// CloseSession ends a session and releases what is bound to it.
func (s *Store) CloseSession(ctx context.Context, id string) error {
	_, err := s.do(ctx, &core.CloseSession{Namespace: s.namespace, ID: id})
	return err
}

func (s *Store) session(ctx context.Context, command core.Command, seen uint64) (store.SessionAnswer, error) {
	answer, err := s.do(ctx, command)
	if err != nil {
		return store.SessionAnswer{}, err
	}
	session, names := answer.Session, answer.Session.Intervened
	unseen := session.Interventions - min(seen, session.Interventions)
	if unseen < uint64(len(names)) {
		names = names[uint64(len(names))-unseen:]
	}
	return store.SessionAnswer{
		Remaining: session.Remaining, Counted: true, Interventions: session.Interventions,
		Intervened: slices.Clone(names),
	}, nil
}

package server

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// Acquire asks for a lease, and waits at the server.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if len(r.Value) > 0 {
		return store.Grant{}, store.Require(s, store.ValueInLease)
	}
	if r.Session == "" { // the server would take 0 for its default
		if err := s.Features().CheckTTL(r.TTL); err != nil {
			return store.Grant{}, err
		}
	}
	request := acquireRequest(r)
	send := func(ctx context.Context, server *v1.Caller) (v1.Lease, error) { return server.Acquire(ctx, request) }
	if r.Wait == 0 {
		lease, err := ask(ctx, s, send)
		return grant(lease), err
	}
	chosen := s.servers.Choose()
	lease, err := send(ctx, chosen.Caller)
	if v1.Transient(err) && ctx.Err() == nil {
		s.servers.Leave(chosen) // else the caller ended the wait, which says nothing about the server
	}
	return grant(lease), err
}

func acquireRequest(r store.Request) v1.AcquireRequest {
	request := v1.AcquireRequest{
		Resource: r.Resource, Shared: r.Shared, Slots: v1.Slots(r.Slots), Capacity: r.Capacity,
		Holder: r.Holder, ID: r.ID, Session: r.Session, Party: r.Party, Reason: r.Reason,
		Labels: store.LabelMap(r.Labels),
		Grace:  v1.Duration(r.Grace), HoldLimit: v1.Duration(r.HoldLimit), Priority: r.Priority,
		Wait: v1.Duration(r.Wait), Reservation: r.Reservation,
	}
	if r.Select != nil {
		request.Where, request.Spread, request.Units = r.Select.Where, r.Select.Spread, r.Select.Units
	}
	if r.Session == "" {
		request.TTL = v1.TTL{Duration: v1.Duration(r.TTL)}
	}
	for _, item := range r.Also {
		request.Also = append(request.Also, v1.AcquireItem{
			Resource: item.Resource, ID: item.ID, Shared: item.Shared, Slots: v1.Slots(item.Slots),
			Capacity: item.Capacity,
		})
	}
	return request
}

// Renew renews leases one by one. A session renews many by one request.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	answers := make([]store.Renewal, len(leases))
	for i, ref := range leases {
		lease, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Lease, error) {
			return server.Renew(ctx, v1.RenewRequest{ID: ref.ID})
		})
		switch {
		case err == nil:
			answers[i].Grant = grant(lease)
		case errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound):
			answers[i].Ended = &leasehold.Ending{ID: ref.ID} // only the history knows how
		case len(leases) == 1:
			return nil, err
		default:
			answers[i].Err = err
		}
	}
	return answers, nil
}

// Release releases leases, and withdraws waiters. Without the session it would count as an
// intervention.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	request := v1.ReleaseRequest{Session: r.Session, Withdraw: r.Withdraw}
	if len(r.Leases) == 1 && !r.Withdraw {
		request.ID = r.Leases[0].ID
	} else {
		for _, ref := range r.Leases {
			request.IDs = append(request.IDs, ref.ID)
		}
	}
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		return server.Release(ctx, request)
	})
}

// Break ends a lease as an operator.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	period := v1.Duration(r.Period)
	lease, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Lease, error) {
		return server.Break(ctx, v1.BreakRequest{ID: r.ID, Period: &period, By: r.By, Reason: r.Reason})
	})
	return grant(lease).Lease, err
}

// Change gives a lease another holder or id.
func (s *Store) Change(ctx context.Context, ref store.Ref, holder, newID string) (store.Grant, error) {
	lease, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Lease, error) {
		return server.Change(ctx, v1.ChangeRequest{ID: ref.ID, Holder: holder, NewID: newID})
	})
	return grant(lease), err
}

// Note shows how far the holder is.
func (s *Store) Note(ctx context.Context, ref store.Ref, text string) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		_, err := server.Renew(ctx, v1.RenewRequest{ID: ref.ID, Note: &text})
		return err
	})
}

// Move gives a waiter another priority.
func (s *Store) Move(ctx context.Context, waiter store.Ref, priority int, by, reason string) (int, error) {
	moved, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Waiter, error) {
		return server.Move(ctx, v1.MoveRequest{ID: waiter.ID, Priority: priority, By: by, Reason: reason})
	})
	return moved.Position, err
}

// Ask sends a message to the holder of a resource.
func (s *Store) Ask(ctx context.Context, m store.Message) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		request := v1.AskRequest{Resource: m.Resource, Message: m.Text, By: m.By}
		_, err := server.Ask(ctx, request, v1.WithKey(m.Key))
		return err
	})
}

// DefineUnits names the slots of a resource, and keeps the rest of its definition.
func (s *Store) DefineUnits(ctx context.Context, resource string, units []string, by, key string) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		change := v1.DefinitionChange{Units: v1.To(units), By: by, Replace: true}
		_, err := server.ChangeDefinition(ctx, resource, change, v1.WithKey(key))
		return err
	})
}

// OpenSession opens a session.
func (s *Store) OpenSession(
	ctx context.Context, id string, ttl time.Duration, labels leasehold.Labels,
) (store.SessionAnswer, error) {
	request := v1.SessionRequest{ID: id, TTL: v1.TTL{Duration: v1.Duration(ttl)}, Labels: store.LabelMap(labels)}
	session, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Session, error) {
		return server.OpenSession(ctx, request)
	})
	return sessionAnswer(session), err
}

// RenewSession renews a session.
func (s *Store) RenewSession(ctx context.Context, id string, seen uint64) (store.SessionAnswer, error) {
	session, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Session, error) {
		if seen == 0 {
			return server.RenewSession(ctx, id)
		}
		return server.RenewSessionSince(ctx, id, seen)
	})
	return sessionAnswer(session), err
}

// CloseSession ends a session.
func (s *Store) CloseSession(ctx context.Context, id string) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error { return server.CloseSession(ctx, id) })
}

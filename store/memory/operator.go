package memory

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Change gives a lease another holder or id.
func (s *Store) Change(ctx context.Context, lease store.Ref, holder, newID string) (store.Grant, error) {
	answer, err := s.do(ctx, &core.Change{Namespace: s.namespace, ID: lease.ID, Holder: holder, NewID: newID})
	if err != nil {
		return store.Grant{}, err
	}
	return granted(answer), nil
}

// Ask sends the holders of a resource a message.
func (s *Store) Ask(ctx context.Context, m store.Message) error {
	_, err := s.do(ctx, &core.Ask{
		Namespace: s.namespace, Resource: m.Resource, By: m.By, Message: m.Text, Request: core.Request{Key: m.Key},
	})
	return err
}

// Note shows how far a holder is. It renews the lease, too.
func (s *Store) Note(ctx context.Context, lease store.Ref, text string) error {
	_, err := s.do(ctx, &core.Renew{Namespace: s.namespace, ID: lease.ID, Note: &text})
	return err
}

// maxEvents is how many events History returns.
const maxEvents = 1000

// History returns the last events of a resource.
func (s *Store) History(ctx context.Context, resource string) (found []leasehold.Event, err error) {
	var history core.History
	if err := s.read(ctx, func(v core.View) { history = v.History(s.namespace) }); err != nil {
		return nil, err
	}
	events := history.All()
	for _, e := range slices.Backward(events[max(0, len(events)-maxLook):]) {
		if e.Resource == resource {
			if found = append(found, *e); len(found) == maxEvents {
				break
			}
		}
	}
	slices.Reverse(found)
	return found, nil
}

// DefineUnits sets the names of a resource's slots, and keeps the rest of its definition.
func (s *Store) DefineUnits(ctx context.Context, resource string, units []string, by, key string) error {
	_, err := s.do(ctx, &core.Define{
		Namespace: s.namespace, Definition: leasehold.Definition{Path: resource, Units: slices.Clone(units)}, By: by,
		Fields: core.FieldSlots, Request: core.Request{Key: key},
	})
	return err
}

// Move gives a waiter another priority. The position is 0 if that granted it its lease.
func (s *Store) Move(ctx context.Context, waiter store.Ref, priority int, by, reason string) (int, error) {
	answer, err := s.do(ctx, &core.Move{
		Namespace: s.namespace, ID: waiter.ID, Priority: priority, By: by, Reason: reason,
	})
	if err != nil || answer.Waiter == nil {
		return 0, err
	}
	return answer.Waiter.Position, nil
}

package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/store"
)

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := s.check(&r); err != nil {
		return store.Grant{}, err
	}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	defer done()
	if floor := max(r.Floor, s.world.floor); floor > 0 {
		if err := s.world.engine.LiftTokens(s.namespace, floor); err != nil {
			return store.Grant{}, err
		}
	}
	try := &attempt{Engine: s.world.engine}
	answer, err := engine.Acquire(ctx, try, s.toAcquire(&r), true)
	if err != nil {
		return store.Grant{}, err
	}
	grant := granted(answer)
	grant.Waited = try.queued
	return grant, nil
}

// check refuses what a core would take for something else, or leave out.
func (s *Store) check(r *store.Request) error {
	if len(r.Value) > 0 {
		return store.Require(s, store.ValueInLease)
	}
	if r.Session == "" {
		if err := s.Features().CheckTTL(r.TTL); err != nil {
			return err
		}
	}
	items := append([]store.Item{{Shared: r.Shared, Slots: r.Slots, Ref: store.Ref{Resource: r.Resource}}}, r.Also...)
	for _, item := range items {
		if item.Shared && item.Slots > 1 {
			return invalid("a shared lease on %s takes one slot, and the request names %d: leave one of them out",
				item.Resource, item.Slots)
		}
	}
	return nil
}

func (s *Store) toAcquire(r *store.Request) *core.Acquire {
	command := &core.Acquire{
		Namespace: s.namespace, Resource: r.Resource, ID: r.ID, Slots: slots(r.Slots, r.Shared), Capacity: r.Capacity,
		Holder: r.Holder, Labels: sorted(r.Labels), Reason: r.Reason, TTL: r.TTL, Session: r.Session, Wait: r.Wait,
		Grace: r.Grace, HoldLimit: r.HoldLimit, Priority: r.Priority, Party: r.Party,
		Select: r.Select, Reservation: r.Reservation, Task: leasehold.IsTaskFolder(r.Resource),
	}
	for _, item := range r.Also {
		command.Also = append(command.Also, core.Item{
			Resource: item.Resource, ID: item.ID, Slots: slots(item.Slots, item.Shared), Capacity: item.Capacity,
		})
	}
	return command
}

func slots(n int, shared bool) int {
	if shared {
		return 1
	}
	return n
}

// sorted returns labels in the order in which the core keeps them.
func sorted(labels leasehold.Labels) leasehold.Labels {
	labels = slices.Clone(labels)
	slices.SortFunc(labels, func(a, b leasehold.Label) int { return strings.Compare(a.Key, b.Key) })
	return labels
}

func granted(answer core.Answer) store.Grant {
	grant := store.Grant{Lease: *answer.Lease, Counted: true}
	for _, lease := range answer.Also {
		grant.Also = append(grant.Also, store.Grant{Lease: lease, Counted: true})
	}
	return grant
}

// An attempt notices, on the way to the engine, whether an acquire was put in the queue.
type attempt struct {
	engine.Engine
	queued bool
}

func (a *attempt) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := a.Engine.Do(ctx, command)
	if _, ok := command.(*core.Acquire); ok {
		a.queued = answer.Waiter != nil
	}
	return answer, err
}

// do carries out a command that does not wait.
func (s *Store) do(ctx context.Context, command core.Command) (core.Answer, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return core.Answer{}, err
	}
	defer done()
	return s.world.engine.Do(ctx, command)
}

// read looks at the state.
func (s *Store) read(ctx context.Context, fn func(core.View)) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.world.engine.Read(ctx, fn)
}

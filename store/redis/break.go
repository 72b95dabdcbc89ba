package redis

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease, at once or after a period, or takes a waiter out of the queue.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if err := checkNames(r.Ref); err != nil {
		return leasehold.Lease{}, err
	}
	if len(r.By) > leasehold.MaxName || len(r.Reason) > leasehold.MaxName {
		return leasehold.Lease{}, invalid("the name or the reason is longer than %d bytes", leasehold.MaxName)
	}
	queue := s.names.queue(r.Resource)
	keys := []string{s.names.lease(r.Resource), s.names.mark(r.ID), queue[0], queue[1], queue[2], s.names.index()}
	a, err := s.call(ctx, breakScript, keys, r.ID, r.Resource, r.By, r.Reason,
		decimal(max(0, r.Period).Microseconds()), s.names.channel())
	if err != nil {
		return leasehold.Lease{}, err
	}
	switch a.word {
	case "broken":
		return s.lease(a.now, r.Resource, list(a.rest[0])), nil
	case "left":
		n := readNote(text(a.rest[0]))
		return leasehold.Lease{Namespace: s.namespace, Resource: r.Resource, ID: r.ID, State: leasehold.Broken,
			Holder: n.Holder, Labels: n.labels(), Reason: n.Reason}, nil
	case "lost":
		return leasehold.Lease{}, &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
			"the lease %s on %s has ended already: %v", r.ID, r.Resource, s.ending(r.ID, list(a.rest[0])).How)}
	}
	return leasehold.Lease{}, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"the lease %s neither holds %s nor waits for it", r.ID, r.Resource)}
}

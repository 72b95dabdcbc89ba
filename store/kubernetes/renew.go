package kubernetes

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// atOnce is how many Leases of one call are written at the same time.
const atOnce = 32

// Renew renews leases. Each is one write.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	renewals := make([]store.Renewal, len(leases))
	store.Each(len(leases), atOnce, func(i int) { renewals[i] = s.renew(ctx, leases[i]) })
	return renewals, nil
}

// renew writes a new renewTime if the object is still this lease's; one that ran out is ended and not revived.
func (s *Store) renew(ctx context.Context, ref store.Ref) store.Renewal {
	var ended *leasehold.Ending
	v, err := s.change(ctx, ref.Resource, func(v view) (*object, error) {
		ended = nil
		mine := v.mine(ref.ID)
		switch {
		case mine && v.held(s.watch.clock.Now()):
			return s.renewed(v.object), nil
		case mine: // written, so that no other process takes it for alive
			next := s.end(v.object, wasExpired, "", "")
			ended = next.ending(ref.ID)
			return next, nil
		case v.cached:
			return nil, errLook
		}
		if ended = v.ending(ref.ID); ended == nil {
			ended = &leasehold.Ending{ID: ref.ID}
		}
		return nil, nil
	})
	if err != nil {
		return store.Renewal{Err: err}
	}
	if ended != nil {
		return store.Renewal{Ended: ended}
	}
	n := v.object.current()
	if n == nil {
		return store.Renewal{Err: &leasehold.Error{Code: leasehold.Undecided,
			Message: "the API server does not show what was written: an admission webhook may have changed it"}}
	}
	return store.Renewal{Grant: store.Grant{Lease: s.toLease(ref.Resource, n, n.ttl())}}
}

// renewed returns a Lease as its holder renews it.
func (s *Store) renewed(o *object) *object {
	o = o.clone()
	o.Spec.RenewTime = o.Spec.nextTime()
	return o
}

// mine reports whether an id holds the Lease, if that has not ended.
func (v view) mine(id string) bool {
	if v.object == nil {
		return false
	}
	n := v.object.current()
	return n != nil && n.ID == id
}

func (v view) ending(id string) *leasehold.Ending {
	if v.object == nil {
		return nil
	}
	return v.object.ending(id)
}

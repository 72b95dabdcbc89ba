package kubernetes

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease as an operator. It can be that of an elector, whose id is its identity.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if r.Period > 0 {
		return leasehold.Lease{}, store.Require(s, store.BreakPeriod)
	}
	var lease leasehold.Lease
	_, err := s.change(ctx, r.Resource, func(v view) (*object, error) {
		if v.cached {
			return nil, errLook
		}
		held := v.held(s.watch.clock.Now())
		if held {
			lease = s.holder(r.Resource, v)
			lease.State = leasehold.Broken
		}
		switch {
		case v.mine(r.ID) && held:
			return s.end(v.object, wasBroken, r.By, r.Reason), nil
		case held && v.object.current() == nil && v.object.Spec.HolderIdentity == r.ID:
			next := v.object.clone()
			next.Spec.HolderIdentity = ""
			return next, nil
		}
		if e := v.ending(r.ID); e != nil {
			return nil, lostError(r.ID, r.Resource, e)
		}
		return nil, &leasehold.Error{Code: leasehold.NotFound,
			Message: fmt.Sprintf("%s does not hold %s", r.ID, r.Resource)}
	})
	if err != nil {
		return leasehold.Lease{}, err
	}
	return lease, nil
}

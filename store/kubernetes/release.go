package kubernetes

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Release ends leases. An id that is not known is marked. That changes the version of the Lease, so an
// acquire that was sent before fails when it arrives.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	errs := make([]error, len(r.Leases))
	store.Each(len(r.Leases), atOnce, func(i int) { errs[i] = s.release(ctx, r.Leases[i]) })
	return firstOf(errs...)
}

func (s *Store) release(ctx context.Context, ref store.Ref) error {
	_, err := s.change(ctx, ref.Resource, func(v view) (*object, error) {
		switch {
		case v.mine(ref.ID) && v.held(s.watch.clock.Now()):
			return s.end(v.object, wasReleased, "", ""), nil
		case v.mine(ref.ID):
			return s.end(v.object, wasExpired, "", ""), nil
		case v.ending(ref.ID) != nil: // how it ended was decided then
			return nil, nil
		}
		var next *object
		if v.object == nil {
			next = s.empty(ref.Resource)
		} else {
			next = v.object.clone()
		}
		next.mark(ref.ID, wasReleased, s.serverTime())
		return next, nil
	})
	return err
}

// end returns a Lease as it is when its lease has ended.
func (s *Store) end(o *object, h how, by, reason string) *object {
	now := s.serverTime()
	o = o.clone()
	n := o.current()
	n.Value, n.Ended = nil, &ended{How: h, At: now, By: by, Reason: reason}
	o.set(keyLease, encode(n))
	o.mark(n.ID, h, now)
	if h == wasBroken {
		o.remember(broken{ID: n.ID, Token: n.Token, ended: *n.Ended})
	}
	o.Spec.HolderIdentity = ""
	o.Spec.RenewTime = o.Spec.nextTime()
	return o
}

// serverTime is the API server's clock. It decides when marks are dropped, and is what others are shown. A
// process may have asked for nothing in hours, so time has passed since it was shown.
func (s *Store) serverTime() time.Time {
	return time.Unix(0, s.ahead.Load()+int64(s.watch.clock.Now())).UTC().Truncate(time.Second)
}

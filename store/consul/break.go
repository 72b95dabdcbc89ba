package consul

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease as an operator.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if err := s.ready(); err != nil {
		return leasehold.Lease{}, err
	}
	if r.Period > 0 {
		return leasehold.Lease{}, store.Require(s, store.BreakPeriod)
	}
	for range tries {
		lease, ok, err := s.breakOnce(ctx, r)
		if ok || err != nil {
			return lease, s.failure(err)
		}
	}
	return leasehold.Lease{}, &leasehold.Error{Code: leasehold.Undecided,
		Message: r.Resource + " changed during the break: try again"}
}

// breakOnce deletes the key and marks the id. Then the session is ended, which locks nothing any more.
func (s *Store) breakOnce(ctx context.Context, r store.BreakRequest) (lease leasehold.Lease, ok bool, err error) {
	kvs, err := s.get(ctx, s.keys.lease(r.Resource), s.keys.mark(r.ID))
	if err != nil {
		return lease, false, err
	}
	holder, used := claimOf(r.Resource, kvs[0]), markOf(kvs[1])
	if !holder.by(r.ID) {
		if used != nil {
			return lease, false, lost(r.ID, r.Resource, used)
		}
		return lease, false, &leasehold.Error{Code: leasehold.NotFound,
			Message: fmt.Sprintf("%s does not hold %s", r.ID, r.Resource)}
	}
	m := mark{How: leasehold.ByBreak.String(), By: r.By, Reason: r.Reason, At: time.Now().UTC()}
	if ok, err = s.write(ctx, r.Ref, change{holder: holder, used: used, mark: m}); !ok || err != nil {
		return lease, false, err
	}
	s.unbind(r.ID, "")
	s.sessions.destroy(ctx, holder.session)
	token := holder.token()
	if used != nil {
		token = used.token
	}
	lease = s.toLease(holder, token, 0)
	lease.State = leasehold.Broken
	return lease, true, nil
}

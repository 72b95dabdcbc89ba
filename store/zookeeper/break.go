package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease or a wait as an operator. Its mark tells the holder.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if err := s.ready(ctx); err != nil {
		return leasehold.Lease{}, err
	}
	if r.Period > 0 {
		return leasehold.Lease{}, store.Require(s, store.BreakPeriod)
	}
	lease, err := run(ctx, func(ctx context.Context) (leasehold.Lease, error) {
		defer s.ids.lock(r.ID)()
		return s.breakNow(ctx, r)
	})
	return lease, s.failure(err)
}

// breakNow deletes the node of a holder or a waiter, and says in its mark who did that and why.
func (s *Store) breakNow(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	c, err := s.anySession(ctx)
	if err != nil {
		return leasehold.Lease{}, err
	}
	defer c.done()
	places, err := s.fresh(c, r.Resource)
	if err != nil {
		return leasehold.Lease{}, err
	}
	for i, p := range places {
		if p.id != r.ID {
			continue
		}
		lease, _, err := s.read(c, r.Resource, p)
		if err == nil {
			if i > 0 {
				lease.Token, lease.Floor = 0, 0 // it was not granted
			}
			m := mark{How: leasehold.ByBreak.String(), By: r.By, Reason: r.Reason, At: time.Now().UTC(),
				Token: lease.Token}
			err = s.put(c, r.ID, m, path.Join(s.paths.resource(r.Resource), p.name))
			if err == nil {
				s.broken(r.ID, m)
				lease.State, lease.Remaining, lease.Expires = leasehold.Broken, 0, time.Time{}
				return lease, nil
			}
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return leasehold.Lease{}, err
		}
	}
	return leasehold.Lease{}, s.notThere(c, r.Ref)
}

// broken ends a lease of this process.
func (s *Store) broken(id string, m mark) {
	l, _ := s.known(id)
	if l == nil {
		return
	}
	s.doom(l, m.ending(id))
	s.drop(l)
}

// notThere is why a lease cannot be broken that has ended, or never was.
func (s *Store) notThere(c *session, ref store.Ref) error {
	if _, e := s.known(ref.ID); e != nil {
		return lost(ref.ID, ref.Resource, e)
	}
	m, err := s.markOf(c, ref.ID)
	if err == nil {
		err = s.permitted(c)
	}
	if err != nil {
		return err
	}
	if m != nil {
		return lost(ref.ID, ref.Resource, m.ending(ref.ID))
	}
	return &leasehold.Error{Code: leasehold.NotFound,
		Message: fmt.Sprintf("%s neither holds %s nor waits for it", ref.ID, ref.Resource)}
}

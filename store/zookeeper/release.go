package zookeeper

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	_, err := run(ctx, func(ctx context.Context) (struct{}, error) {
		errs := make([]error, len(r.Leases))
		store.Each(len(r.Leases), atOnce, func(i int) { errs[i] = s.release(ctx, r.Leases[i]) })
		for _, err := range errs {
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return s.failure(err)
}

func (s *Store) release(ctx context.Context, ref store.Ref) error {
	defer s.ids.lock(ref.ID)()
	l, e := s.known(ref.ID)
	if e != nil {
		s.mu.Lock()
		l = s.leases[ref.ID] // its node may still have to go
		s.mu.Unlock()
		if l == nil {
			return nil
		}
	}
	if l != nil && l.resource == ref.Resource {
		s.doom(l, l.ending(leasehold.Released))
		return s.remove(l)
	}
	return s.withdraw(ctx, ref)
}

// withdraw releases an id that is not known in this process: first a mark, so that it cannot be
// acquired any more, then what it has.
func (s *Store) withdraw(ctx context.Context, ref store.Ref) error {
	c, err := s.anySession(ctx)
	if err != nil {
		return err
	}
	defer c.done()
	if err := s.put(c, ref.ID, mark{How: leasehold.Released.String(), At: time.Now().UTC()}, ""); err != nil {
		return err
	}
	s.end(&leasehold.Ending{ID: ref.ID, How: leasehold.Released, At: time.Now()})
	places, err := s.places(c, ref.Resource)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.id != ref.ID {
			continue
		}
		node := path.Join(s.paths.resource(ref.Resource), p.name)
		if err := c.conn.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

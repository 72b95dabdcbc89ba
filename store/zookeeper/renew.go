package zookeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// atOnce is how many leases of one call are asked about at the same time.
const atOnce = 32

// renewChunk is how many leases one transaction checks.
const renewChunk = 100

// Renew renews leases of this process. One transaction checks the nodes of many: that is a write, which
// the leader decides, and which proves that the session lives.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	start := s.clock.Now()
	renewals, err := run(ctx, func(ctx context.Context) ([]store.Renewal, error) {
		return s.renew(ctx, start, leases), nil
	})
	return renewals, s.failure(err)
}

// A renewing is one lease of a call.
type renewing struct {
	ref   store.Ref
	lease *lease
	out   *store.Renewal
}

func (s *Store) renew(ctx context.Context, start time.Duration, refs []store.Ref) []store.Renewal {
	renewals := make([]store.Renewal, len(refs))
	groups := map[*session][]renewing{}
	var others []renewing
	for i, ref := range refs {
		r := renewing{ref: ref, out: &renewals[i]}
		if l := s.renewable(r, start); l != nil {
			r.lease = l
			groups[l.session] = append(groups[l.session], r)
		} else if r.out.Ended == nil {
			others = append(others, r)
		}
	}
	var all sync.WaitGroup
	for c, group := range groups {
		for len(group) > 0 {
			n := min(renewChunk, len(group))
			chunk := group[:n]
			group = group[n:]
			all.Go(func() { s.renewTogether(c, chunk, start) })
		}
	}
	store.Each(len(others), atOnce, func(i int) { s.renewUnknown(ctx, others[i]) })
	all.Wait()
	return renewals
}

// renewable returns the lease, if this process holds it. If it is known how it ended, that is the answer.
func (s *Store) renewable(r renewing, start time.Duration) *lease {
	l, e := s.known(r.ref.ID)
	if l == nil || l.resource != r.ref.Resource {
		r.out.Ended = e
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !l.held:
		r.out.Ended = &leasehold.Ending{ID: r.ref.ID} // it waits, and was never granted
	case l.doomed || l.until <= start || l.session.over.Load():
		e := l.ending(leasehold.ByTTL)
		if !l.doomed {
			s.doomLocked(l, e)
		}
		r.out.Ended = e
	default:
		return l
	}
	return nil
}

// renewTogether renews leases of one session. If one is gone, each is asked for alone.
func (s *Store) renewTogether(c *session, chunk []renewing, start time.Duration) {
	var checks []any
	for _, r := range chunk {
		checks = append(checks, &zk.CheckVersionRequest{Path: r.lease.path(), Version: -1})
	}
	_, err := c.multi(checks...)
	if errors.Is(err, zk.ErrNoNode) && len(chunk) > 1 {
		store.Each(len(chunk), atOnce, func(i int) { s.renewTogether(c, chunk[i:i+1], start) })
		return
	}
	for _, r := range chunk {
		s.renewed(r, start, err)
	}
}

// renewed answers for one lease.
func (s *Store) renewed(r renewing, start time.Duration, err error) {
	l := r.lease
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if r.out.Ended, err = s.over(l); err != nil {
			r.out.Err = s.failure(err)
		}
		return
	case err != nil:
		r.out.Err = s.failure(err)
		return
	}
	remaining := min(start+l.note.ttl(), l.session.evidence.until()) - start
	switch {
	case !s.extend(l, start+l.note.ttl(), true):
		_, e := s.known(r.ref.ID)
		if e == nil {
			e = l.ending(leasehold.ByTTL)
		}
		r.out.Ended = e
	case remaining <= 0:
		r.out.Err = &leasehold.Error{Code: leasehold.Undecided,
			Message: "it is not known whether ZooKeeper's leader has heard of the session: renew again"}
	default:
		r.out.Lease = s.toLease(l.resource, l.note, l.token, remaining)
	}
}

// renewUnknown answers for an id that is not of this process.
func (s *Store) renewUnknown(ctx context.Context, r renewing) {
	fail := func(err error) { r.out.Err = s.failure(err) }
	c, err := s.anySession(ctx)
	if err != nil {
		fail(err)
		return
	}
	defer c.done()
	places, err := s.fresh(c, r.ref.Resource)
	if err != nil {
		fail(err)
		return
	}
	if len(places) > 0 && places[0].id == r.ref.ID {
		fail(foreign(r.ref.ID, r.ref.Resource))
		return
	}
	m, err := s.markOf(c, r.ref.ID)
	if err == nil {
		err = s.permitted(c)
	}
	if err != nil {
		fail(err)
		return
	}
	r.out.Ended = &leasehold.Ending{ID: r.ref.ID}
	if m != nil {
		r.out.Ended = m.ending(r.ref.ID)
	}
}

package consul

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const (
	lookChunk = 64 // leases in one transaction; two requests each, and Consul allows 128
	renewMany = 32 // renewals at the same time
)

// Renew renews leases. First each key is read from a leader that has proven itself, then its session is
// renewed. Consul's renewal alone proves nothing: a former leader may answer it, and the key may be gone.
// But if the leader changed after the read, its successor starts each session's time again, later than
// the moment before the read, from which the holder counts.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	renewals := make([]store.Renewal, len(leases))
	for from := 0; from < len(leases); from += lookChunk {
		to := min(from+lookChunk, len(leases))
		if err := s.renew(ctx, leases[from:to], renewals[from:to]); err != nil {
			return nil, s.failure(err)
		}
	}
	return renewals, nil
}

func (s *Store) renew(ctx context.Context, refs []store.Ref, renewals []store.Renewal) error {
	began := s.sessions.clock.Now()
	var names []string
	for _, ref := range refs {
		names = append(names, s.keys.lease(ref.Resource), s.keys.mark(ref.ID))
	}
	kvs, err := s.get(ctx, names...)
	if err != nil {
		return err
	}
	store.Each(len(refs), renewMany, func(i int) {
		ref := refs[i]
		renewals[i] = s.renewOne(ctx, began, ref, claimOf(ref.Resource, kvs[2*i]), markOf(kvs[2*i+1]))
	})
	return nil
}

func (s *Store) renewOne(ctx context.Context, began time.Duration, ref store.Ref, c *claim, m *mark) store.Renewal {
	if !c.by(ref.ID) {
		s.unbind(ref.ID, "")
		return store.Renewal{Ended: m.ending(ref.ID)}
	}
	one, err := s.keep(ctx, began, ref, c)
	if err != nil {
		return store.Renewal{Err: s.failure(err)}
	}
	s.bind(ref.ID, one)
	token := c.token()
	c.session, c.index = one.id, one.index
	if m != nil {
		token = m.token
		s.keepMark(ctx, ref, c, m)
	}
	return store.Renewal{Grant: store.Grant{Lease: s.toLease(c, token, c.ttl())}}
}

// keep makes the session of a lease last.
//
// When its time is over, Consul still answers renewals of a session until the command that destroys it is
// carried out. That command may fail, too, and is then repeated for minutes, whatever happened since. So a
// renewal counts only if it is certain that it was answered before that time; else the lease is given
// another session.
func (s *Store) keep(ctx context.Context, began time.Duration, ref store.Ref, c *claim) (session, error) {
	last, known := s.boundTo(ref.ID)
	if !known || last.id != c.session {
		return s.move(ctx, ref, c)
	}
	alive, err := s.sessions.renew(ctx, c.session)
	switch {
	case err != nil:
		return session{}, err
	case !alive:
		return session{}, s.changed(ref)
	case s.sessions.age(last) > c.ttl()*3/2: // Consul's time is twice the TTL
		return s.move(ctx, ref, c)
	}
	return session{id: c.session, ttl: c.ttl(), born: began, index: c.index}, nil
}

// move gives a lease another session. That is the only write to its key after the grant.
func (s *Store) move(ctx context.Context, ref store.Ref, c *claim) (session, error) {
	one, err := s.sessions.create(ctx, "leasehold "+c.Holder, c.ttl())
	if err != nil {
		return session{}, err
	}
	about, key := c.note, s.keys.lease(ref.Resource)
	about.Token = c.token()
	value := encode(about)
	written, ok, err := s.do(ctx, api.KVTxnOps{
		{Verb: api.KVCheckIndex, Key: key, Index: c.index},
		{Verb: api.KVUnlock, Key: key, Value: value, Session: c.session},
		{Verb: api.KVLock, Key: key, Value: value, Session: one.id},
	})
	if err != nil {
		return session{}, err
	}
	if !ok {
		s.sessions.destroy(ctx, one.id)
		return session{}, s.changed(ref)
	}
	s.sessions.destroy(ctx, c.session)
	one.index = written[key].ModifyIndex
	return one, nil
}

// changed is the error for a lease that was there a moment ago. The next renewal tells what became of it.
func (s *Store) changed(ref store.Ref) error {
	s.unbind(ref.ID, "")
	return &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("lease %s on %s has just changed in Consul: try again", ref.ID, ref.Resource)}
}

// keepMark makes the mark of a living lease last, so that it is still there when the lease has ended. If
// it fails, the next renewal does it.
func (s *Store) keepMark(ctx context.Context, ref store.Ref, c *claim, m *mark) {
	if s.sessions.isFresh(m.session) {
		return
	}
	fresh, err := s.sessions.forMark(ctx, c.ttl())
	if err != nil {
		return
	}
	used, last := s.keys.mark(ref.ID), s.keys.last(ref.Resource)
	about := note{ID: c.ID, Holder: c.Holder, TTL: c.TTL, Since: c.Since}
	ops := api.KVTxnOps{
		{Verb: api.KVCheckIndex, Key: used, Index: m.index},
		{Verb: api.KVCheckSession, Key: s.keys.lease(ref.Resource), Session: c.session},
	}
	if m.session != "" {
		ops = append(ops, &api.KVTxnOp{Verb: api.KVUnlock, Key: used, Value: encode(m), Session: m.session})
	}
	_, _, err = s.do(ctx, append(ops,
		&api.KVTxnOp{Verb: api.KVLock, Key: used, Value: encode(m), Session: fresh},
		&api.KVTxnOp{Verb: api.KVDelete, Key: last},
		&api.KVTxnOp{Verb: api.KVLock, Key: last, Value: encode(about), Session: fresh},
	))
	if gone(err) {
		s.sessions.forget()
	}
}

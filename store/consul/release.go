package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// releaseMany is how many leases of one request are released at the same time.
const releaseMany = 16

// Release ends leases and waits.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.ready(); err != nil {
		return err
	}
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	errs := make([]error, len(r.Leases))
	store.Each(len(r.Leases), releaseMany, func(i int) {
		errs[i] = s.end(ctx, r.Leases[i], mark{How: leasehold.Released.String(), At: time.Now().UTC()})
	})
	for _, err := range errs {
		if err != nil {
			return s.failure(err)
		}
	}
	return nil
}

// end ends the lease of an id, and marks it. An id that ended before keeps its mark: how it ended was
// decided then.
func (s *Store) end(ctx context.Context, ref store.Ref, m mark) error {
	if ok, err := s.endOwn(ctx, ref, m); ok || err != nil {
		return err
	}
	for range tries {
		kvs, err := s.get(ctx, s.keys.lease(ref.Resource), s.keys.mark(ref.ID))
		if err != nil {
			return err
		}
		holder, used := claimOf(ref.Resource, kvs[0]), markOf(kvs[1])
		held := holder.by(ref.ID)
		if !held && used != nil {
			s.unbind(ref.ID, "")
			return nil
		}
		freed := ""
		if held {
			freed = holder.session
		} else {
			holder = nil
		}
		ok, err := s.write(ctx, ref, change{holder: holder, used: used, mark: m})
		if err != nil {
			return err
		}
		if ok {
			s.unbind(ref.ID, freed)
			return nil
		}
	}
	return &leasehold.Error{Code: leasehold.Undecided, Message: ref.Resource + " changed during the release: try again"}
}

// endOwn ends a lease that this process acquired a moment ago, without a look. The mark of such a lease
// still exists. Its session would not do to recognize it: that may be the next lease's by now.
func (s *Store) endOwn(ctx context.Context, ref store.Ref, m mark) (bool, error) {
	one, ok := s.boundTo(ref.ID)
	if !ok || one.index == 0 || s.sessions.age(one) > one.ttl/recent {
		return false, nil
	}
	key := s.keys.lease(ref.Resource)
	_, ok, err := s.do(ctx, api.KVTxnOps{
		{Verb: api.KVCheckIndex, Key: key, Index: one.index},
		{Verb: api.KVDelete, Key: key},
		{Verb: api.KVSet, Key: s.keys.mark(ref.ID), Value: encode(m)},
	})
	if ok {
		s.unbind(ref.ID, one.id)
	}
	return ok, err
}

// A change ends a lease, if there is one, and marks its id.
type change struct {
	holder *claim // nil: nothing is held
	used   *mark  // what is there; nil: nothing
	mark   mark   // what is to be there
}

// write carries out a change. It returns false if the state is another by now.
func (s *Store) write(ctx context.Context, ref store.Ref, c change) (bool, error) {
	var ops api.KVTxnOps
	key, used := s.keys.lease(ref.Resource), s.keys.mark(ref.ID)
	if c.holder != nil {
		ops = append(ops,
			&api.KVTxnOp{Verb: api.KVCheckSession, Key: key, Session: c.holder.session},
			&api.KVTxnOp{Verb: api.KVDelete, Key: key})
	}
	if c.used != nil { // it stays locked by its session
		ops = append(ops, &api.KVTxnOp{Verb: api.KVCheckIndex, Key: used, Index: c.used.index},
			&api.KVTxnOp{Verb: api.KVSet, Key: used, Value: encode(c.mark)})
	} else {
		session, err := s.sessions.forMark(ctx, 0)
		if err != nil {
			return false, err
		}
		ops = append(ops, &api.KVTxnOp{Verb: api.KVCheckNotExists, Key: used},
			&api.KVTxnOp{Verb: api.KVLock, Key: used, Value: encode(c.mark), Session: session})
	}
	_, ok, err := s.do(ctx, ops)
	if gone(err) {
		s.sessions.forget()
		return false, nil
	}
	return ok, err
}

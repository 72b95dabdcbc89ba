package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// releaseMany is how many leases of one request are released at the same time.
const releaseMany = 32

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

// end ends whatever an id has, and marks it. An id that ended before keeps its mark: how it ended was
// decided then.
func (s *Store) end(ctx context.Context, ref store.Ref, m mark) error {
	answer, err := s.write(ctx, ref, m)
	if leaseGone(err) {
		s.marks.forget()
		answer, err = s.write(ctx, ref, m)
	}
	if err == nil {
		s.pool.unbind(ref.ID, answer.Responses[0].GetResponseDeleteRange().Deleted > 0)
	}
	return err
}

func (s *Store) write(ctx context.Context, ref store.Ref, m mark) (*clientv3.TxnResponse, error) {
	lease, err := s.marks.lease(ctx, 0)
	if err != nil {
		return nil, err
	}
	holder, waiter := s.keys.holder(ref.Resource), s.keys.waiter(ref.Resource, ref.ID)
	put := clientv3.OpPut(s.keys.mark(ref.ID), encode(m), clientv3.WithLease(lease))
	unknown := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.keys.mark(ref.ID)), "=", 0)}
	return s.client.Txn(ctx).If(clientv3.Compare(clientv3.Value(holder), "=", ref.ID)).
		Then(clientv3.OpDelete(holder), put).
		Else(clientv3.OpDelete(waiter), clientv3.OpTxn(unknown, []clientv3.Op{put}, nil)).
		Commit()
}

package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.ready(); err != nil {
		return err
	}
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	ends := make([]*end, len(r.Leases))
	for i, ref := range r.Leases {
		ends[i] = &end{ref: ref, mark: mark{How: leasehold.Released.String(), At: time.Now().UTC()}}
	}
	return s.failure(s.ends.carryOut(ctx, ends...))
}

// An end is what has to be done to end whatever an id has, and to mark it.
type end struct {
	ref  store.Ref
	mark mark

	ctx  context.Context // of the caller
	done chan error      // receives once
}

// end ends several leases by one step of etcd, and makes their etcd leases idle.
func (s *Store) end(ctx context.Context, some []*end) error {
	answers, err := s.endOnce(ctx, some)
	if leaseGone(err) {
		s.marks.forget()
		answers, err = s.endOnce(ctx, some)
	}
	if err != nil {
		return err
	}
	for i, e := range some {
		s.pool.unbind(e.ref.ID, answers[i].Responses[0].GetResponseDeleteRange().Deleted > 0)
	}
	return nil
}

func (s *Store) endOnce(ctx context.Context, some []*end) ([]*pb.TxnResponse, error) {
	marks, err := s.marks.lease(ctx, 0)
	if err != nil {
		return nil, err
	}
	if len(some) == 1 {
		held, then, or := some[0].step(s.keys, marks)
		answer, err := s.client.Txn(ctx).If(held).Then(then...).Else(or...).Commit()
		return []*pb.TxnResponse{(*pb.TxnResponse)(answer)}, err
	}
	ops := make([]clientv3.Op, len(some))
	for i, e := range some {
		held, then, or := e.step(s.keys, marks)
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{held}, then, or)
	}
	answer, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	answers := make([]*pb.TxnResponse, len(some))
	for i := range some {
		answers[i] = answer.Responses[i].GetResponseTxn()
	}
	return answers, nil
}

// step returns what has to be done at etcd. An id that ended before keeps its mark: how it ended was
// decided then.
func (e *end) step(k keys, marks clientv3.LeaseID) (held clientv3.Cmp, then, or []clientv3.Op) {
	holder, waiter, used := k.holder(e.ref.Resource), k.waiter(e.ref.Resource, e.ref.ID), k.mark(e.ref.ID)
	put := clientv3.OpPut(used, encode(e.mark), clientv3.WithLease(marks))
	unknown := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(used), "=", 0)}
	return clientv3.Compare(clientv3.Value(holder), "=", e.ref.ID),
		[]clientv3.Op{clientv3.OpDelete(holder), put},
		[]clientv3.Op{clientv3.OpDelete(waiter), clientv3.OpTxn(unknown, []clientv3.Op{put}, nil)}
}

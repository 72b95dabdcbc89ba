package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease or a wait as an operator.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if err := s.ready(); err != nil {
		return leasehold.Lease{}, err
	}
	if r.Period > 0 {
		return leasehold.Lease{}, store.Require(s, store.BreakPeriod)
	}
	lease, err := s.breakOnce(ctx, r)
	if leaseGone(err) {
		s.marks.forget()
		lease, err = s.breakOnce(ctx, r)
	}
	if err == nil {
		s.pool.unbind(r.ID, true)
	}
	return lease, s.failure(err)
}

// breakOnce deletes the holder or a waiter if it is still that lease, and leaves a mark of how it ended.
func (s *Store) breakOnce(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	marks, err := s.marks.lease(ctx, 0)
	if err != nil {
		return leasehold.Lease{}, err
	}
	holder, waiter, used := s.keys.holder(r.Resource), s.keys.waiter(r.Resource, r.ID), s.keys.mark(r.ID)
	m := mark{How: leasehold.ByBreak.String(), By: r.By, Reason: r.Reason, At: time.Now().UTC()}
	put := clientv3.OpPut(used, encode(m), clientv3.WithLease(marks))
	held := clientv3.Compare(clientv3.Value(holder), "=", r.ID)
	waits := clientv3.Compare(clientv3.CreateRevision(waiter), ">", 0)
	answer, err := s.client.Txn(ctx).If(held).
		Then(clientv3.OpDelete(holder, clientv3.WithPrevKV()), put, clientv3.OpGet(s.keys.last(r.Resource))).
		Else(clientv3.OpTxn([]clientv3.Cmp{waits},
			[]clientv3.Op{clientv3.OpDelete(waiter, clientv3.WithPrevKV()), put},
			[]clientv3.Op{clientv3.OpGet(used)})).
		Commit()
	if err != nil {
		return leasehold.Lease{}, err
	}
	if answer.Succeeded {
		kv := first(answer.Responses[0].GetResponseDeleteRange().PrevKvs)
		return s.broken(s.heldBy(r.Resource, kv, firstOf(answer, 2))), nil
	}
	nested := (*clientv3.TxnResponse)(answer.Responses[0].GetResponseTxn())
	if !nested.Succeeded {
		return leasehold.Lease{}, notThere(r.Ref, markOf(firstOf(nested, 0)))
	}
	kv := first(nested.Responses[0].GetResponseDeleteRange().PrevKvs)
	return s.broken(&claim{note: noteOf(kv), resource: r.Resource}), nil
}

func (s *Store) broken(c *claim) leasehold.Lease {
	lease := s.toLease(c, 0)
	lease.State = leasehold.Broken
	return lease
}

// notThere is why a lease cannot be broken that has ended, or never was.
func notThere(ref store.Ref, m *mark) error {
	if m != nil {
		return lost(ref.ID, ref.Resource, m)
	}
	return &leasehold.Error{Code: leasehold.NotFound,
		Message: fmt.Sprintf("%s neither holds %s nor waits for it", ref.ID, ref.Resource)}
}

package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const (
	aliveChunk = 1000 // renewals on one stream before the answers are read
	lookChunk  = 42   // leases in one transaction; three requests each, and etcd allows 128
)

// Renew renews leases. A renewal of an etcd lease says nothing about the key that is bound to it, so
// each key is looked at afterwards.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	for range 2 {
		renewals, err := s.renew(ctx, leases)
		if renewals != nil || err != nil {
			return renewals, s.failure(err)
		}
	}
	return nil, &leasehold.Error{Code: leasehold.Undecided, Message: "etcd changed its leader during the renewal"}
}

// renew returns nothing if etcd's leader changed meanwhile: the former leader could have confirmed a
// renewal that its successor does not know of.
func (s *Store) renew(ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
	began := s.pool.clock.Now()
	ids, err := s.leasesOf(ctx, refs)
	if err != nil {
		return nil, err
	}
	alive, err := s.keepAlive(ctx, ids)
	if err != nil {
		return nil, err
	}
	renewals := make([]store.Renewal, len(refs))
	var same atomic.Bool
	same.Store(true)
	err = chunks(len(refs), func(from, to int) error {
		r := &renewing{s: s, refs: refs[from:to], ids: ids[from:to], ttls: alive.ttls[from:to],
			renewals: renewals[from:to], began: began}
		err := r.look(ctx)
		if alive.term != 0 && r.term != alive.term {
			same.Store(false)
		}
		return err
	})
	if err != nil || !same.Load() {
		return nil, err
	}
	return renewals, nil
}

// leasesOf returns the etcd leases of leases; 0 for one that is not held. Those that this process
// acquired are known.
func (s *Store) leasesOf(ctx context.Context, refs []store.Ref) ([]clientv3.LeaseID, error) {
	ids := make([]clientv3.LeaseID, len(refs))
	var unknown []int
	for i, ref := range refs {
		if l, ok := s.pool.of(ref.ID); ok {
			ids[i] = l.id
		} else {
			unknown = append(unknown, i)
		}
	}
	return ids, chunks(len(unknown), func(from, to int) error {
		var gets []clientv3.Op
		for _, i := range unknown[from:to] {
			gets = append(gets, clientv3.OpGet(s.keys.holder(refs[i].Resource)))
		}
		answer, err := s.client.Txn(ctx).Then(gets...).Commit()
		if err != nil {
			return err
		}
		for n, i := range unknown[from:to] {
			if kv := firstOf(answer, n); kv != nil && string(kv.Value) == refs[i].ID {
				ids[i] = clientv3.LeaseID(kv.Lease)
			}
		}
		return nil
	})
}

// chunks calls a function for each part of a list at the same time. It returns one of the errors.
func chunks(n int, do func(from, to int) error) error {
	errs := make([]error, (n+lookChunk-1)/lookChunk)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = do(i*lookChunk, min((i+1)*lookChunk, n)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// alive is the answer to renewals of etcd leases.
type alive struct {
	ttls []time.Duration // 0: it has ended
	term uint64          // the oldest in which one was answered
}

// left returns what is left of a lease after a renewal that was relied on in a term; 0 if another leader
// may have answered it.
func (a alive) left(i int, term uint64) time.Duration {
	if a.term != term {
		return 0
	}
	return a.ttls[i]
}

// keepAlive renews etcd leases by one stream of its own, which answers in order. An ID of 0 is left out.
func (s *Store) keepAlive(ctx context.Context, ids []clientv3.LeaseID) (alive, error) {
	a := alive{ttls: make([]time.Duration, len(ids))}
	var asked []int
	for i, id := range ids {
		if id != 0 {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return a, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return a, err
	}
	for chunk := range slices.Chunk(asked, aliveChunk) {
		for _, i := range chunk {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(ids[i])}); err != nil {
				_, err = stream.Recv() // why the stream has ended
				return a, err
			}
		}
		for _, i := range chunk {
			answer, err := stream.Recv()
			if err != nil {
				return a, err
			}
			if answer.ID != int64(ids[i]) {
				return a, fmt.Errorf("etcd answered the renewal of lease %x with lease %x", ids[i], answer.ID)
			}
			a.ttls[i] = max(0, time.Duration(answer.TTL)*time.Second)
			if term := answer.Header.RaftTerm; a.term == 0 || term < a.term {
				a.term = term
			}
		}
	}
	return a, nil
}

// renewing looks at the keys of leases whose etcd leases were renewed.
type renewing struct {
	s        *Store
	refs     []store.Ref
	ids      []clientv3.LeaseID
	ttls     []time.Duration
	renewals []store.Renewal
	began    time.Duration
	term     uint64
}

func (r *renewing) look(ctx context.Context) error {
	var gets []clientv3.Op
	for _, ref := range r.refs {
		gets = append(gets, clientv3.OpGet(r.s.keys.holder(ref.Resource)),
			clientv3.OpGet(r.s.keys.last(ref.Resource)), clientv3.OpGet(r.s.keys.mark(ref.ID)))
	}
	answer, err := r.s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return err
	}
	r.term = answer.Header.RaftTerm
	for i, ref := range r.refs {
		holder := r.s.heldBy(ref.Resource, firstOf(answer, 3*i), firstOf(answer, 3*i+1))
		r.renewals[i] = r.one(ctx, i, holder, firstOf(answer, 3*i+2))
	}
	return nil
}

// one returns what became of one lease.
func (r *renewing) one(ctx context.Context, i int, holder *claim, kept *mvccpb.KeyValue) store.Renewal {
	ref := r.refs[i]
	switch {
	case !holder.by(ref.ID):
		r.s.pool.unbind(ref.ID, false)
		return r.s.notHeld(ctx, ref, markOf(kept))
	case r.ttls[i] == 0 || holder.lease != r.ids[i]:
		r.s.pool.unbind(ref.ID, false) // if it is another lease, the next renewal looks for it
		return store.Renewal{Err: &leasehold.Error{Code: leasehold.Undecided,
			Message: fmt.Sprintf("lease %s on %s is about to expire in etcd", ref.ID, ref.Resource)}}
	}
	r.s.pool.bind(ref.ID, lease{id: r.ids[i], asked: holder.TTL, ttl: r.ttls[i], renewed: r.began})
	r.s.keepMark(ctx, ref, holder, kept)
	return store.Renewal{Grant: store.Grant{Lease: r.s.toLease(holder, r.ttls[i])}}
}

// notHeld is the answer to the renewal of an id that does not hold its resource.
func (s *Store) notHeld(ctx context.Context, ref store.Ref, m *mark) store.Renewal {
	if m == nil {
		answer, err := s.client.Get(ctx, s.keys.waiter(ref.Resource, ref.ID), clientv3.WithCountOnly())
		if err != nil {
			return store.Renewal{Err: s.failure(err)}
		}
		if answer.Count > 0 {
			return store.Renewal{Err: &leasehold.Error{Code: leasehold.Refused,
				Message: fmt.Sprintf("%s still waits for %s", ref.ID, ref.Resource)}}
		}
	}
	return store.Renewal{Ended: m.ending(ref.ID)}
}

// keepMark makes the mark of a living lease last, so that it is still there when the lease has ended. If
// it fails, the next renewal does it.
func (s *Store) keepMark(ctx context.Context, ref store.Ref, c *claim, kept *mvccpb.KeyValue) {
	if kept != nil && s.marks.fresh(clientv3.LeaseID(kept.Lease)) {
		return
	}
	lease, err := s.marks.lease(ctx, time.Duration(c.TTL)*time.Second)
	if err != nil {
		return
	}
	revision := int64(0)
	if kept != nil {
		revision = kept.ModRevision
	}
	again := encode(mark{Token: leasehold.Token(c.revision)})
	_, err = s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(s.keys.holder(ref.Resource)), "=", c.revision),
		clientv3.Compare(clientv3.ModRevision(s.keys.mark(ref.ID)), "=", revision),
	).Then(
		clientv3.OpPut(s.keys.mark(ref.ID), again, clientv3.WithLease(lease)),
		clientv3.OpPut(s.keys.last(ref.Resource), encode(c.note), clientv3.WithLease(lease)),
	).Commit()
	if leaseGone(err) {
		s.marks.forget()
	}
}

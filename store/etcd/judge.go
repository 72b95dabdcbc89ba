package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A view is what an attempt sees of its resource and its id, at one revision.
type view struct {
	won      bool          // by the step that returned it
	left     time.Duration // of what was won, from the beginning of the call; 0: not known
	term     uint64        // in which it was seen
	revision int64
	holder   *claim
	mark     *mark

	own      int64 // the create revision of the own waiter; 0: there is none
	ownLease clientv3.LeaseID

	ahead   int    // how many waiters are before it; all of them if there is none
	waiting int    // all waiters
	before  string // the key of what has to go first
}

// free reports whether a newcomer would be granted.
func (v *view) free() bool { return v.holder == nil && v.mark == nil && v.waiting == 0 }

// gets are the requests that make a view.
func (a *attempt) gets() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(a.s.keys.holder(a.r.Resource)),
		clientv3.OpGet(a.s.keys.last(a.r.Resource)),
		clientv3.OpGet(a.s.keys.mark(a.r.ID)),
		clientv3.OpGet(a.s.keys.waiter(a.r.Resource, a.r.ID)),
		clientv3.OpGet(a.s.keys.waiters(a.r.Resource), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}
}

func (a *attempt) look(ctx context.Context) (*view, error) {
	answer, err := a.s.client.Txn(ctx).Then(a.gets()...).Commit()
	if err != nil {
		return nil, err
	}
	answer.Succeeded = false // there was no condition, and nothing is won
	return a.viewOf(answer, 0), nil
}

// viewOf reads the answer of a step that binds a lease if it succeeds, and looks if it does not.
func (a *attempt) viewOf(answer *clientv3.TxnResponse, l clientv3.LeaseID) *view {
	v := &view{won: answer.Succeeded, revision: answer.Header.Revision, term: answer.Header.RaftTerm}
	if v.won {
		v.holder = &claim{note: a.note, resource: a.r.Resource, lease: l, revision: v.revision}
		return v
	}
	v.holder = a.s.heldBy(a.r.Resource, firstOf(answer, 0), firstOf(answer, 1))
	v.mark = markOf(firstOf(answer, 2))
	if kv := firstOf(answer, 3); kv != nil {
		v.own, v.ownLease = kv.CreateRevision, clientv3.LeaseID(kv.Lease)
	}
	waiters := answer.Responses[4].GetResponseRange().Kvs // without values, and so without leases
	v.waiting = len(waiters)
	v.before = a.s.keys.holder(a.r.Resource)
	for newest, i := int64(0), 0; i < len(waiters); i++ {
		if at := waiters[i].CreateRevision; v.own == 0 || at < v.own {
			v.ahead++
			if at > newest {
				newest, v.before = at, string(waiters[i].Key)
			}
		}
	}
	return v
}

// judge decides what a view means for the attempt.
func (a *attempt) judge(ctx context.Context, v *view) (store.Grant, error) {
	a.waits = v.own != 0
	switch {
	case v.won:
		return a.won(ctx, v)
	case v.holder.by(a.r.ID):
		return a.mine(ctx, v)
	case v.mark != nil:
		return store.Grant{}, lost(a.r.ID, a.r.Resource, v.mark)
	case a.waits:
		return a.queued(ctx, v)
	case v.free():
		return store.Grant{}, errTake
	case a.r.Wait > 0:
		return store.Grant{}, a.enqueue(ctx)
	}
	return store.Grant{}, a.held(ctx, v)
}

// mine is judge for an id that holds the resource already.
func (a *attempt) mine(ctx context.Context, v *view) (store.Grant, error) {
	remaining, err := a.s.remaining(ctx, v.holder.lease)
	if err != nil {
		return store.Grant{}, err
	}
	if remaining < 0 {
		return store.Grant{}, errLook
	}
	return a.toGrant(ctx, v, remaining)
}

// queued is judge for an id that waits. Each look renews its place.
func (a *attempt) queued(ctx context.Context, v *view) (store.Grant, error) {
	alive, err := a.s.keepAlive(ctx, []clientv3.LeaseID{v.ownLease})
	if err != nil {
		return store.Grant{}, err
	}
	if alive.ttls[0] == 0 {
		return store.Grant{}, errLook
	}
	if v.holder != nil || v.ahead > 0 {
		a.watch(ctx, v)
		return store.Grant{}, a.held(ctx, v)
	}
	after, err := a.promote(ctx, v)
	if leaseGone(err) {
		a.s.marks.forget()
		err = errLook
	}
	if err != nil {
		return store.Grant{}, err
	}
	if !after.won {
		return store.Grant{}, errLook
	}
	after.left = alive.left(0, after.term)
	grant, err := a.won(ctx, after)
	grant.Waited = true
	return grant, err
}

// won returns a grant that was just made. If it is not known what is left of it, it is renewed.
func (a *attempt) won(ctx context.Context, v *view) (store.Grant, error) {
	if v.left <= 0 {
		renewals, err := a.s.Renew(ctx, store.Ref{Resource: a.r.Resource, ID: a.r.ID})
		if err != nil {
			return store.Grant{}, err
		}
		if renewals[0].Ended != nil {
			return store.Grant{}, errLook
		}
		if v.left = renewals[0].Remaining; renewals[0].Err != nil {
			return store.Grant{}, renewals[0].Err
		}
	}
	return a.toGrant(ctx, v, v.left)
}

// toGrant returns the lease of a view, unless its token shows that etcd has lost its history.
func (a *attempt) toGrant(ctx context.Context, v *view, remaining time.Duration) (store.Grant, error) {
	if token := leasehold.Token(v.holder.revision); token <= a.r.Floor || token > leasehold.MaxToken {
		back := &end{ref: store.Ref{Resource: a.r.Resource, ID: a.r.ID}, mark: mark{How: leasehold.Released.String()}}
		if err := a.s.ends.carryOut(ctx, back); err != nil {
			return store.Grant{}, err
		}
		return store.Grant{}, &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
			"etcd is at revision %d, but token %d was granted before: "+
				"it was restored from an older copy or replaced. Restore it with "+
				"etcdutl snapshot restore --bump-revision --mark-compacted", token, a.r.Floor)}
	}
	return store.Grant{Lease: a.s.toLease(v.holder, max(remaining, 1))}, nil
}

// held returns the error of who is in the way.
func (a *attempt) held(ctx context.Context, v *view) error {
	e := &leasehold.Error{Code: leasehold.Held, Waiting: v.waiting,
		Message: fmt.Sprintf("%s is free, but %d wait for it", a.r.Resource, v.waiting)}
	if v.own != 0 {
		e.Position = v.ahead + 1
	}
	if v.holder == nil {
		return e
	}
	remaining, err := a.s.remaining(ctx, v.holder.lease)
	if err != nil {
		return err
	}
	// Within its last second 0 is left, rounded down. A waiter asks again when that is over.
	lease := a.s.toLease(v.holder, max(remaining, time.Second/2))
	e.Lease, e.Message = &lease, fmt.Sprintf("%s is held by %s", a.r.Resource, v.holder.Holder)
	return e
}

// remaining returns what is left of an etcd lease, rounded down to a second; negative: it has ended.
func (s *Store) remaining(ctx context.Context, lease clientv3.LeaseID) (time.Duration, error) {
	answer, err := s.client.TimeToLive(ctx, lease)
	if leaseGone(err) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(answer.TTL) * time.Second, nil
}

// watch makes the attempt wake up when what is before it in the queue has gone.
func (a *attempt) watch(ctx context.Context, v *view) {
	a.unwatch()
	ctx, cancel := context.WithCancel(ctx)
	a.unarmed = cancel
	events := a.s.client.Watch(ctx, v.before, clientv3.WithRev(v.revision+1), clientv3.WithFilterPut())
	go func() {
		for answer := range events {
			if len(answer.Events) > 0 {
				select {
				case a.wake <- struct{}{}:
				default:
				}
				return
			}
		}
	}()
}

func (a *attempt) unwatch() {
	if a.unarmed != nil {
		a.unarmed()
	}
}

// firstOf returns the first key of a response; nil if there is none.
func firstOf(answer *clientv3.TxnResponse, n int) *mvccpb.KeyValue {
	return first(answer.Responses[n].GetResponseRange().Kvs)
}

func first(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

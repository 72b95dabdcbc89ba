package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := s.check(&r); err != nil {
		return store.Grant{}, err
	}
	a := &attempt{s: s, r: &r, note: newNote(&r), wake: make(chan struct{}, 1)}
	defer a.end()
	if r.Wait <= 0 {
		return a.ask(ctx)
	}
	poll := max(min(r.TTL/3, 10*time.Second), 100*time.Millisecond)
	w := store.Waiting{For: r.Wait, Poll: poll, Wake: a.wake, Leave: store.Leaving(s, r)}
	return store.Await(ctx, w, a.ask)
}

// check refuses what etcd cannot do, and names that cannot be kept.
func (s *Store) check(r *store.Request) error {
	if err := s.ready(); err != nil {
		return err
	}
	return store.Check(s, *r)
}

// An attempt is one call of Acquire.
type attempt struct {
	s    *Store
	r    *store.Request
	note note

	lease *lease // an etcd lease that nothing is bound to; nil: none yet
	waits bool   // the id is in the queue

	wake    chan struct{}
	unarmed context.CancelFunc
}

// end gives back what the attempt did not use.
func (a *attempt) end() {
	a.unwatch()
	if a.lease != nil {
		a.s.pool.put(*a.lease)
	}
}

// tries is how often the state may change between a look and the step that relies on it.
const tries = 16

// recent is the part of its TTL that an idle etcd lease may be old without another renewal.
const recent = 10

// What has to be done instead of an answer.
var (
	errLook = errors.New("look at the state")
	errTake = errors.New("take what is free")
)

// ask asks once.
func (a *attempt) ask(ctx context.Context) (store.Grant, error) {
	next := errTake
	if a.lease == nil && !a.waits {
		l, ok := a.s.pool.take(a.note.TTL)
		if ok {
			a.lease = &l
		} else if a.r.Wait <= 0 {
			next = errLook // rather than make an etcd lease for nothing
		}
	} else {
		next = errLook
	}
	for range tries {
		step := a.take
		if errors.Is(next, errLook) {
			step = a.look
		}
		v, err := step(ctx)
		var grant store.Grant
		if err == nil {
			grant, err = a.judge(ctx, v)
		}
		if !errors.Is(err, errTake) && !errors.Is(err, errLook) {
			return grant, a.s.failure(err)
		}
		next = err
	}
	return store.Grant{}, &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("%s changed hands %d times during the request: try again", a.r.Resource, tries)}
}

// take takes the resource if it is free and nobody waits for it, and returns what it found.
func (a *attempt) take(ctx context.Context) (*view, error) {
	if a.lease == nil {
		fresh, err := a.s.grant(ctx, a.note.TTL)
		if err != nil {
			return nil, err
		}
		a.lease = &fresh
	}
	l := *a.lease
	a.lease = nil // until it is known what became of it
	began, renewed := a.s.pool.clock.Now(), a.refresh(ctx, l)
	v, err := a.commit(ctx, l.id)
	again := <-renewed
	if leaseGone(err) {
		a.s.marks.forget()
		return nil, errTake
	}
	if err != nil {
		return nil, err
	}
	if !v.won {
		a.lease = &l
		return v, nil
	}
	v.left = l.ttl - (began - l.renewed)
	if again != nil {
		v.left = again.left(0, v.term)
	}
	if again != nil && v.left > 0 {
		l.renewed = began
	}
	a.s.pool.bind(a.r.ID, l)
	return v, nil
}

// refresh renews an etcd lease that was idle for a while, at the same time as it is used. It sends nil
// if that is not necessary.
func (a *attempt) refresh(ctx context.Context, l lease) <-chan *alive {
	answer := make(chan *alive, 1)
	if a.s.pool.age(l) < l.ttl/recent {
		answer <- nil
		return answer
	}
	go func() {
		again, err := a.s.keepAlive(ctx, []clientv3.LeaseID{l.id})
		if err != nil {
			again = alive{ttls: []time.Duration{0}}
		}
		answer <- &again
	}()
	return answer
}

// commit takes the resource if it is free and nobody waits for it.
func (a *attempt) commit(ctx context.Context, l clientv3.LeaseID) (*view, error) {
	k, r := a.s.keys, a.r
	puts, err := a.puts(ctx, l)
	if err != nil {
		return nil, err
	}
	answer, err := a.s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(k.resource(r.Resource)), "=", 0).WithPrefix(),
		clientv3.Compare(clientv3.CreateRevision(k.mark(r.ID)), "=", 0),
	).Then(puts...).Commit()
	if err != nil {
		return nil, err
	}
	if !answer.Succeeded { // a look costs etcd less than a larger step does, which is written to its log
		return a.look(ctx)
	}
	return a.viewOf(answer, l), nil
}

// puts are what is written by a grant.
func (a *attempt) puts(ctx context.Context, l clientv3.LeaseID) ([]clientv3.Op, error) {
	marks, err := a.s.marks.lease(ctx, a.r.TTL)
	if err != nil {
		return nil, err
	}
	return []clientv3.Op{
		clientv3.OpPut(a.s.keys.holder(a.r.Resource), a.r.ID, clientv3.WithLease(l)),
		clientv3.OpPut(a.s.keys.mark(a.r.ID), encode(mark{}), clientv3.WithLease(marks)),
		clientv3.OpPut(a.s.keys.last(a.r.Resource), encode(a.note), clientv3.WithLease(marks)),
	}, nil
}

// promote makes the first waiter the holder, if it still waits.
func (a *attempt) promote(ctx context.Context, v *view) (*view, error) {
	k, r := a.s.keys, a.r
	puts, err := a.puts(ctx, v.ownLease)
	if err != nil {
		return nil, err
	}
	answer, err := a.s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(k.holder(r.Resource)), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(k.mark(r.ID)), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(k.waiter(r.Resource, r.ID)), "=", v.own),
	).Then(append(puts, clientv3.OpDelete(k.waiter(r.Resource, r.ID)))...).Else(a.gets()...).Commit()
	if err != nil {
		return nil, err
	}
	return a.viewOf(answer, v.ownLease), nil
}

// enqueue makes the id a waiter. The resource may have become free since, so a look is due.
func (a *attempt) enqueue(ctx context.Context) error {
	if a.lease == nil {
		fresh, err := a.s.grant(ctx, a.note.TTL)
		if err != nil {
			return err
		}
		a.lease = &fresh
	}
	l, k, r := *a.lease, a.s.keys, a.r
	a.lease = nil // until it is known what became of it
	answer, err := a.s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(k.mark(r.ID)), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(k.waiter(r.Resource, r.ID)), "=", 0),
	).Then(
		clientv3.OpPut(k.waiter(r.Resource, r.ID), encode(a.note), clientv3.WithLease(l.id)),
	).Commit()
	switch {
	case leaseGone(err):
	case err != nil:
		return err
	case answer.Succeeded:
		a.s.pool.bind(r.ID, l)
	default:
		a.lease = &l
	}
	return errLook
}

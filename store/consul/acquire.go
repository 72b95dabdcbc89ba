package consul

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

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
	poll := max(min(r.TTL/3, 5*time.Second), 100*time.Millisecond)
	return store.Await(ctx, store.Waiting{For: r.Wait, Poll: poll, Wake: a.wake}, a.ask)
}

// check refuses what Consul cannot do, and names that cannot be kept.
func (s *Store) check(r *store.Request) error {
	if err := s.ready(); err != nil {
		return err
	}
	return store.Check(s, *r)
}

// An attempt is one call of Acquire.
type attempt struct {
	s       *Store
	r       *store.Request
	note    note
	session *session // which locks nothing; nil: none yet

	wake    chan struct{}
	watched uint64        // the index of the key whose change wakes the attempt; 0: none
	over    chan struct{} // closed when that watch has ended
	unarmed context.CancelFunc
}

// end gives back what the attempt did not use.
func (a *attempt) end() {
	a.unwatch()
	if a.session != nil {
		a.s.sessions.put(*a.session)
	}
}

// tries is how often the state may change between a look and the step that relies on it.
const tries = 16

// errTake says that the resource is free.
var errTake = errors.New("take what is free")

// ask asks once.
func (a *attempt) ask(ctx context.Context) (store.Grant, error) {
	if a.session != nil && a.s.sessions.age(*a.session) > a.r.TTL/recent {
		a.session = nil // it ends by itself
	}
	if a.session == nil {
		if one, ok := a.s.sessions.take(a.r.TTL); ok {
			a.session = &one
		}
	}
	look := a.session == nil // rather than make a session for nothing
	for range tries {
		var grant store.Grant
		var err error
		if look {
			grant, err = a.judge(ctx)
		} else {
			grant, err = a.take(ctx)
		}
		if !errors.Is(err, errTake) {
			return grant, a.s.failure(err)
		}
		look = !look
	}
	return store.Grant{}, &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("%s changed hands %d times during the request: try again", a.r.Resource, tries)}
}

// take locks the key if it is free. It returns errTake if a look is due.
func (a *attempt) take(ctx context.Context) (store.Grant, error) {
	if a.session == nil || a.s.sessions.age(*a.session) > a.r.TTL/recent {
		one, err := a.s.sessions.create(ctx, "leasehold "+a.r.Holder, a.r.TTL)
		if err != nil {
			return store.Grant{}, err
		}
		a.session = &one
	}
	one := *a.session
	a.session = nil // until it is known what became of it
	ops, err := a.ops(ctx, one.id)
	if err != nil {
		return store.Grant{}, err
	}
	remaining := a.r.TTL - a.s.sessions.age(one)
	written, ok, err := a.s.do(ctx, ops)
	switch {
	case gone(err):
		a.s.sessions.forget()
		return store.Grant{}, errTake
	case err != nil:
		a.s.bind(a.r.ID, one) // perhaps it holds
		return store.Grant{}, err
	case !ok:
		a.session = &one
		return store.Grant{}, errTake
	}
	kv := written[a.s.keys.lease(a.r.Resource)]
	one.index = kv.ModifyIndex
	a.s.bind(a.r.ID, one)
	c := &claim{note: a.note, resource: a.r.Resource, session: one.id, index: kv.ModifyIndex}
	return a.toGrant(ctx, c, leasehold.Token(kv.ModifyIndex), remaining)
}

// ops are the steps of a grant.
func (a *attempt) ops(ctx context.Context, session string) (api.KVTxnOps, error) {
	marks, err := a.s.sessions.forMark(ctx, a.r.TTL)
	if err != nil {
		return nil, err
	}
	k := a.s.keys
	about := note{ID: a.r.ID, Holder: a.r.Holder, TTL: a.note.TTL, Since: a.note.Since}
	used, last := k.mark(a.r.ID), k.last(a.r.Resource)
	return api.KVTxnOps{
		{Verb: api.KVCheckNotExists, Key: used},
		{Verb: api.KVLock, Key: k.lease(a.r.Resource), Value: encode(a.note), Session: session},
		{Verb: api.KVLock, Key: used, Value: encode(mark{}), Session: marks},
		{Verb: api.KVDelete, Key: last}, // another session may have it
		{Verb: api.KVLock, Key: last, Value: encode(about), Session: marks},
	}, nil
}

// judge looks at the resource and the id, and decides what that means. It returns errTake if the
// resource is free.
func (a *attempt) judge(ctx context.Context) (store.Grant, error) {
	kvs, err := a.s.get(ctx, a.s.keys.lease(a.r.Resource), a.s.keys.mark(a.r.ID))
	if err != nil {
		return store.Grant{}, err
	}
	holder, used := claimOf(a.r.Resource, kvs[0]), markOf(kvs[1])
	switch {
	case holder.by(a.r.ID) && used != nil:
		return a.mine(ctx, holder, used)
	case used != nil:
		return store.Grant{}, lost(a.r.ID, a.r.Resource, used)
	case holder == nil:
		return store.Grant{}, errTake
	}
	if a.r.Wait > 0 {
		a.watch(ctx, kvs[0])
	}
	lease := a.s.toLease(holder, holder.token(), holder.ttl())
	return store.Grant{}, &leasehold.Error{Code: leasehold.Held, Lease: &lease,
		Message: fmt.Sprintf("%s is held by %s", a.r.Resource, holder.Holder)}
}

// mine is judge for an id that holds the resource already. Consul does not tell what is left. If this
// process did not make the session, the client has to renew the lease before it relies on it.
func (a *attempt) mine(ctx context.Context, holder *claim, used *mark) (store.Grant, error) {
	one, ok := a.s.boundTo(a.r.ID)
	if ok && one.id == holder.session {
		return a.toGrant(ctx, holder, used.token, one.ttl-a.s.sessions.age(one))
	}
	grant, err := a.toGrant(ctx, holder, used.token, holder.ttl())
	grant.Waited = true
	return grant, err
}

// toGrant returns a lease, unless its token shows that Consul has lost its history.
func (a *attempt) toGrant(
	ctx context.Context, c *claim, token leasehold.Token, remaining time.Duration,
) (store.Grant, error) {
	if token > a.r.Floor && token <= leasehold.MaxToken {
		// Nothing may be left by now, but 0 would be a lease without an end.
		return store.Grant{Lease: a.s.toLease(c, token, max(remaining, 1))}, nil
	}
	ref := store.Ref{Resource: a.r.Resource, ID: a.r.ID}
	if err := a.s.end(ctx, ref, mark{How: leasehold.Released.String()}); err != nil {
		return store.Grant{}, err
	}
	return store.Grant{}, &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
		"consul is at index %d, but token %d was granted before: it is a new cluster, or lost its data. "+
			"Restore a snapshot in the cluster that granted it: consul snapshot restore FILE", token, a.r.Floor)}
}

// watch makes the attempt wake up when the key changes. A watch that waits for that already goes on: one that
// is cancelled keeps its place in Consul to the end of its time.
func (a *attempt) watch(ctx context.Context, kv *api.KVPair) {
	if a.watched == kv.ModifyIndex && !closed(a.over) {
		return
	}
	a.unwatch()
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	a.watched, a.over, a.unarmed = kv.ModifyIndex, over, cancel
	q := (&api.QueryOptions{RequireConsistent: true, WaitIndex: kv.ModifyIndex, WaitTime: time.Minute}).WithContext(ctx)
	go func() {
		_, _, err := a.s.client.KV().Get(kv.Key, q)
		close(over)
		if err != nil {
			return // the poll behind it goes on
		}
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *attempt) unwatch() {
	if a.unarmed != nil {
		a.unarmed()
	}
}

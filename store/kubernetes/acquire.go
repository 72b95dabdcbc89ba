package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// electorsSee is how much longer than the TTL the duration in a Lease is: electors do not see a second
// renewal within the same second, and would take the Lease that much too early.
const electorsSee = time.Second

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := store.Check(s, r); err != nil {
		return store.Grant{}, err
	}
	if r.Wait <= 0 {
		return s.ask(ctx, &r)
	}
	w := &waker{s: s, name: objectName(s.namespace, r.Resource), free: make(chan struct{}, 1)}
	defer w.stop()
	poll := min(max(r.TTL/3, 500*time.Millisecond), 5*time.Second)
	return store.Await(ctx, store.Waiting{For: r.Wait, Poll: poll, Wake: w.free},
		func(ctx context.Context) (store.Grant, error) {
			grant, err := s.ask(ctx, &r)
			if errors.Is(err, leasehold.ErrHeld) {
				w.start(ctx)
			}
			return grant, err
		})
}

// ask asks once.
func (s *Store) ask(ctx context.Context, r *store.Request) (store.Grant, error) {
	var lost error
	found := false
	v, err := s.change(ctx, r.Resource, func(v view) (*object, error) {
		now := s.watch.clock.Now()
		lost, found = nil, false
		if v.object == nil {
			return s.empty(r.Resource), errAgain
		}
		mine := v.object.current()
		switch {
		case mine != nil && mine.ID == r.ID && v.cached: // it may have been broken
			return nil, errLook
		case mine != nil && mine.ID == r.ID && !v.held(now):
			next := s.end(v.object, wasExpired, "", "")
			lost = lostError(r.ID, r.Resource, next.ending(r.ID))
			return next, nil
		case mine != nil && mine.ID == r.ID && v.since >= 0:
			found = true
			return nil, nil
		case mine != nil && mine.ID == r.ID:
			// It is not known when it was renewed last, so nobody could say what is left of it.
			return s.renewed(v.object), nil
		}
		if e := v.object.ending(r.ID); e != nil {
			return nil, lostError(r.ID, r.Resource, e)
		}
		if v.held(now) {
			if v.cached {
				return nil, errLook
			}
			return nil, s.heldError(r.Resource, v)
		}
		return s.take(v.object, r)
	})
	if err != nil || lost != nil {
		return store.Grant{}, firstOf(err, lost)
	}
	n := v.object.current()
	if n == nil {
		return store.Grant{}, &leasehold.Error{Code: leasehold.Undecided,
			Message: "the API server does not show what was written: an admission webhook may have changed it"}
	}
	remaining := n.ttl()
	if found {
		remaining = v.ends() - s.watch.clock.Now()
	}
	return store.Grant{Lease: s.toLease(r.Resource, n, max(remaining, 1))}, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// empty returns the Lease of a resource that has none. Nobody holds it yet: the token comes from the
// version that it gets.
func (s *Store) empty(resource string) *object {
	o := &object{Meta: metadata{Name: objectName(s.namespace, resource)}}
	return s.describe(o, resource)
}

// describe adds what makes a Lease ours.
func (s *Store) describe(o *object, resource string) *object {
	if o.Meta.Labels == nil {
		o.Meta.Labels = map[string]string{}
	}
	o.Meta.Labels[labelNamespace] = labelOf(s.namespace)
	o.set(keyResource, resource)
	return o
}

// take returns a Lease as its next holder writes it.
func (s *Store) take(o *object, r *store.Request) (*object, error) {
	token, err := o.nextToken(r.Floor)
	if err != nil {
		return nil, err
	}
	o = s.describe(o.clone(), r.Resource)
	if last := o.noteOf(); last != nil && last.Ended == nil {
		o.mark(last.ID, wasExpired, s.serverTime())
	}
	n := newNote(r, token)
	o.set(keyLease, encode(n))
	o.set(keyToken, strconv.FormatUint(uint64(token), 10))
	now := o.Spec.nextTime()
	o.Spec = spec{HolderIdentity: n.identity(), LeaseDurationSeconds: int64((r.TTL + electorsSee) / time.Second),
		AcquireTime: now, RenewTime: now, LeaseTransitions: o.Spec.LeaseTransitions + 1}
	return o, nil
}

// toLease returns what a note says as a lease of which something is left.
func (s *Store) toLease(resource string, n *note, remaining time.Duration) leasehold.Lease {
	return leasehold.Lease{
		Namespace: s.namespace, Resource: resource, ID: n.ID, Holder: n.Holder, Labels: store.LabelsOf(n.Labels),
		Reason: n.Reason, State: leasehold.Leased, Token: n.Token, Floor: n.Token, TTL: n.ttl(),
		Acquired: n.Since, Remaining: remaining, Expires: time.Now().Add(remaining),
	}
}

// holder returns the lease that somebody has, which may be an elector.
func (s *Store) holder(resource string, v view) leasehold.Lease {
	remaining := v.remaining(s.watch.clock.Now())
	if n := v.object.current(); n != nil {
		return s.toLease(resource, n, remaining)
	}
	o := v.object
	l := leasehold.Lease{
		Namespace: s.namespace, Resource: resource, ID: o.Spec.HolderIdentity, Holder: o.Spec.HolderIdentity,
		State: leasehold.Leased, TTL: v.duration(), Door: "kubernetes",
	}
	if l.Acquired, _ = time.Parse(microTime, o.Spec.AcquireTime); remaining > 0 {
		l.Remaining, l.Expires = remaining, time.Now().Add(remaining)
	}
	return l
}

func (s *Store) heldError(resource string, v view) error {
	lease := s.holder(resource, v)
	return &leasehold.Error{Code: leasehold.Held, Lease: &lease,
		Message: fmt.Sprintf("%s is held by %s", resource, lease.Holder)}
}

func lostError(id, resource string, e *leasehold.Ending) error {
	message := fmt.Sprintf("lease %s on %s has expired: acquire it again under another id", id, resource)
	switch e.How {
	case leasehold.ByBreak:
		message = fmt.Sprintf("lease %s on %s was broken by %s: %s", id, resource, e.By, e.Reason)
	case leasehold.Released:
		message = fmt.Sprintf("lease %s on %s was released: acquire it again under another id", id, resource)
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: message}
}

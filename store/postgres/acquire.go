package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// poll is how often a waiter asks again, if no notification comes.
const poll = time.Second

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := store.Check(s, r); err != nil {
		return store.Grant{}, err
	}
	if r.Wait <= 0 {
		grant, _, err := s.acquire(ctx, r)
		return grant, err
	}
	wake := make(chan struct{}, 1)
	var place place
	defer func() { s.listener.leave(place, wake) }()
	grant, err := store.Await(ctx, store.Waiting{For: r.Wait, Poll: min(poll, r.TTL/4), Wake: wake},
		func(ctx context.Context) (store.Grant, error) {
			grant, a, err := s.acquire(ctx, r)
			if now := (placeOf(a)); now.n != 0 && now != place {
				s.listener.leave(place, wake)
				place = now
				s.listener.enter(place, wake)
				// What was said between the answer and this moment was not heard: ask once more.
				notify(wake)
			}
			return grant, err
		})
	if e, ok := errors.AsType[*leasehold.Error](err); ok && e.Code == leasehold.Held && place.n != 0 {
		s.unqueue(ctx, r)
		e.Waiting, e.Position = e.Waiting-1, 0
	}
	return grant, err
}

// unqueue ends a wait whose time is over. Else the ones behind it would wait for its TTL, and if they wait no
// longer than that, nobody would ever be granted anything. Should it fail, the place ends with that TTL.
func (s *Store) unqueue(ctx context.Context, r store.Request) {
	ctx, cancel := context.WithTimeout(ctx, r.TTL)
	defer cancel()
	err := s.call(ctx, func(pgx.Rows) error { return nil }, "select "+s.schema+
		".unqueue($1::bytea, $2::bytea, $3::bytea)", s.namespace, []byte(r.Resource), []byte(r.ID))
	if err != nil {
		s.log.Warn("a wait that is over could not be ended", "resource", r.Resource, "error", err)
	}
}

// acquire asks once.
func (s *Store) acquire(ctx context.Context, r store.Request) (store.Grant, answer, error) {
	maxTTL := s.maxTTL
	if s.lossless {
		maxTTL = 0
	}
	answers, err := s.ask(ctx, "acquire($1::bytea, $2::bytea, $3::bytea, $4::bigint, $5::boolean, $6::bigint, "+
		"$7::text::json, $8::bytea, $9::bigint)", s.namespace, []byte(r.Resource), []byte(r.ID), r.TTL.Microseconds(),
		r.Wait > 0, int64(r.Floor), requestNote(r).encode(), r.Value, maxTTL.Microseconds())
	if err != nil {
		return store.Grant{}, answer{}, err
	}
	a := answers[0]
	switch a.verdict {
	case "granted":
		return store.Grant{Lease: s.lease(a, r.Resource)}, a, nil
	case "held":
		return store.Grant{}, a, s.held(a, r.Resource)
	case "lost":
		return store.Grant{}, a, &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
			"the lease %s of %s has ended (%s): ask with a new id", r.ID, r.Resource, leasehold.How(a.how))}
	case "quarantined":
		return store.Grant{}, a, unavailable("this is not the PostgreSQL server that granted the leases before "+
			"(after a failover or a restore), so some may be missing: nothing is granted for another %v",
			a.deadline.Sub(a.now).Round(time.Millisecond))
	case "exhausted":
		return store.Grant{}, a, &leasehold.Error{Code: leasehold.Limited,
			Message: "the token would be larger than 2^53: check the floor, and the clock of the server"}
	}
	return store.Grant{}, a, undecided("PostgreSQL answered %q: the schema %s has another version",
		a.verdict, s.schema)
}

// held says who is in the way. There may be nobody but other waiters, or a transaction that is fenced by a
// lease that has ended.
func (s *Store) held(a answer, resource string) error {
	e := &leasehold.Error{Code: leasehold.Held, Waiting: int(a.waiting), Position: int(a.position)}
	if len(a.id) == 0 {
		e.Message = fmt.Sprintf("%s: others wait for it, or a transaction that its last lease fenced is still open",
			resource)
		return e
	}
	lease := s.lease(a, resource)
	e.Lease = &lease
	e.Message = fmt.Sprintf("%s is held by %s for another %v", resource, lease.Holder, lease.Remaining)
	return e
}

// lease returns the lease of an answer. More than the TTL is left after the clock stepped back; it may step
// forward again, so nobody relies on it.
func (s *Store) lease(a answer, resource string) leasehold.Lease {
	n := decodeNote(a.note)
	l := leasehold.Lease{Namespace: string(s.namespace), Resource: resource, ID: string(a.id), Holder: n.Holder,
		Labels: n.labels(), Reason: n.Reason, State: leasehold.Leased, Token: leasehold.Token(a.token),
		Floor: leasehold.Token(a.token), TTL: micros(a.ttl), Remaining: micros(min(a.remains, a.ttl)),
		Acquired: a.acquired, Expires: a.deadline}
	if a.breaks != nil {
		l.State = leasehold.Breaking
	}
	return l
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

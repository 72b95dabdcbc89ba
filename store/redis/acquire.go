package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/redis/rueidis"
)

// pollEvery is how often a waiter asks that nothing wakes.
const pollEvery = time.Second

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := store.Check(s, r); err != nil {
		return store.Grant{}, err
	}
	w := store.Waiting{For: r.Wait, Poll: min(pollEvery, r.TTL/3), Leave: store.Leaving(s, r)}
	if r.Wait > 0 {
		var done func()
		w.Wake, done = s.wakes.wait(r.ID)
		defer done()
	}
	began := time.Now()
	return store.Await(ctx, w, func(ctx context.Context) (store.Grant, error) {
		for {
			left := r
			left.Wait = r.Wait - time.Since(began)
			grant, err := s.ask(ctx, left)
			var q *quietError
			if !errors.As(err, &q) || left.Wait <= 0 || !pause(ctx, min(q.left, left.Wait, w.Poll)) {
				return grant, err
			}
		}
	})
}

// pause reports whether ctx is still alive after d.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d + time.Millisecond):
		return true
	}
}

// keep is how long an id that ended is remembered; KEEP in the scripts.
const keep = 10 * time.Minute

// ask asks once.
func (s *Store) ask(ctx context.Context, r store.Request) (store.Grant, error) {
	wait := "0"
	if r.Wait > 0 {
		wait = "1"
	}
	queue := s.names.queue(r.Resource)
	keys := []string{
		s.names.record(), s.names.lease(r.Resource), s.names.mark(r.ID), queue[0], queue[1], queue[2], s.names.index(),
	}
	args := []string{
		r.ID, r.Resource, wait, noteOf(r), rueidis.BinaryString(r.Value), inJSON(r.Resource, r.Holder),
		decimal(r.TTL.Microseconds()), decimal(int64(r.Floor)), decimal(s.maxTTL.Microseconds()),
		decimal((r.TTL + keep).Milliseconds()), "0",
	}
	a, err := s.call(ctx, acquireScript, keys, args...)
	if errors.Is(err, leasehold.ErrLimited) {
		// The id may hold the lease already: only a new one needs memory.
		args[len(args)-1] = "1"
		full := err
		if a, err = s.call(ctx, lookScript, keys, args...); err == nil && a.word == "full" {
			err = full
		}
	}
	if err != nil {
		return store.Grant{}, err
	}
	return s.granted(ctx, a, r)
}

// granted turns the answer to an acquire into a grant, or says why it is none.
func (s *Store) granted(ctx context.Context, a answer, r store.Request) (store.Grant, error) {
	switch a.word {
	case "new":
		if number(a.rest[0]) == 1 {
			s.log.Warn("Redis has lost grants: the last token that it knows is below one that was seen",
				"seen", r.Floor, "namespace", s.namespace)
		}
		s.sweep(ctx)
		return store.Grant{Lease: s.newLease(a.now, r, leasehold.Token(number(a.rest[1])))}, nil
	case "granted":
		return store.Grant{Lease: s.lease(a.now, r.Resource, list(a.rest[0]))}, nil
	case "held":
		return store.Grant{}, s.held(a, r.Resource)
	case "lost":
		e := s.ending(r.ID, list(a.rest[0]))
		return store.Grant{}, &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
			"the lease %s on %s has ended: %v", r.ID, r.Resource, e.How)}
	case "quiet":
		return store.Grant{}, quiet(micros(number(a.rest[0])), number(a.rest[1]) == 1)
	case "elsewhere":
		return store.Grant{}, &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
			"the lease id %s is used for another resource: make a new id for each lease", r.ID)}
	case "spent":
		return store.Grant{}, &leasehold.Error{Code: leasehold.Refused,
			Message: "the namespace has no tokens left below 2^53: check the clock of Redis and the floor"}
	}
	return store.Grant{}, undecided("Redis answered %q to an acquire", a.word)
}

// held says who is in the way.
func (s *Store) held(a answer, resource string) error {
	e := &leasehold.Error{Code: leasehold.Held, Position: int(number(a.rest[0])), Waiting: int(number(a.rest[1]))}
	fields := list(a.rest[2])
	if fields == nil {
		e.Message = fmt.Sprintf("%s is free, but %d waited before", resource, e.Waiting)
		return e
	}
	l := s.lease(a.now, resource, fields)
	e.Lease = &l
	e.Message = fmt.Sprintf("%s is held by %s", resource, l.Holder)
	return e
}

// A quietError says why nothing is granted for now.
type quietError struct {
	reason *leasehold.Error
	left   time.Duration
}

func (e *quietError) Error() string { return e.reason.Message }
func (e *quietError) Unwrap() error { return e.reason }

func quiet(left time.Duration, known bool) error {
	shown := left.Round(time.Second / 10)
	message := fmt.Sprintf("Redis was restarted or has failed over, and may have lost leases: "+
		"new ones are granted again in %v", shown)
	if !known {
		message = fmt.Sprintf("this namespace is new to Redis, or Redis has lost its data: leases are granted in %v; "+
			"if nobody has used it before, add init=true to the URL, once, to skip the wait", shown)
	}
	return &quietError{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, left}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

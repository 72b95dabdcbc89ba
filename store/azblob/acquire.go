package azblob

import (
	"context"
	"fmt"
	"time"

	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// poll is how often a waiter asks.
const poll = time.Second

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := store.Check(s, r); err != nil {
		return store.Grant{}, err
	}
	a := &attempt{s: s, r: &r}
	if r.Wait <= 0 {
		return a.ask(ctx)
	}
	return store.Await(ctx, store.Waiting{For: r.Wait, Poll: poll}, a.ask)
}

// An attempt is one call of Acquire.
type attempt struct {
	s *Store
	r *store.Request
}

// tries is how often others may write between a look and the step that relies on it.
const tries = 16

// ask asks once.
func (a *attempt) ask(ctx context.Context) (store.Grant, error) {
	s := a.s
	if err := s.ready(ctx); err != nil {
		return store.Grant{}, err
	}
	start := s.clock.Now()
	unlock, err := s.ids.lock(ctx, a.r.ID)
	if err != nil {
		return store.Grant{}, err
	}
	defer unlock()
	for range tries {
		grant, again, err := a.once(ctx, start)
		if !again {
			return grant, s.failure(err)
		}
	}
	return store.Grant{}, &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("%s changed %d times during the request: try again", a.r.Resource, tries)}
}

// once looks and tries to take what is free. again says that the state has changed in between.
func (a *attempt) once(ctx context.Context, start time.Duration) (grant store.Grant, again bool, err error) {
	l, e := a.s.known(a.r.ID)
	if e != nil {
		return grant, false, lost(a.r.ID, a.r.Resource, e)
	}
	v, err := a.s.look(ctx, a.r.Resource)
	if err != nil {
		return grant, false, err
	}
	if v == nil {
		return grant, true, a.s.create(ctx, a.r.Resource)
	}
	if v.id() == a.r.ID {
		grant, err = a.mine(ctx, v, l, start)
		return grant, false, err
	}
	if v.leased() && l == nil { // if it was asked for before, the lease may be its own
		return grant, false, a.held(v)
	}
	if wait := a.young(v); wait > 0 {
		return grant, true, pause(ctx, wait)
	}
	return a.take(ctx, v, start)
}

// young returns how long to wait before the first grant of a blob. Its tokens begin with the second in which
// it was written, and a blob before it may have been written, granted and deleted in the same second.
func (a *attempt) young(v *view) time.Duration {
	if v.token() != 0 || v.date.Unix() > v.written.Unix() {
		return 0
	}
	return time.Second / 5
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mine answers for an id that the last grant was for. An acquire is no renewal, so what remains is counted
// from when it was asked for or renewed. Where another process did that, only a renewal tells.
func (a *attempt) mine(ctx context.Context, v *view, l *lease, start time.Duration) (store.Grant, error) {
	s := a.s
	if !v.leased() {
		e, err := s.howEnded(ctx, a.r.Resource, a.r.ID)
		if err != nil {
			return store.Grant{}, err
		}
		s.over(a.r.ID, e)
		return store.Grant{}, lost(a.r.ID, a.r.Resource, e)
	}
	if l == nil {
		renewal := s.renewOne(ctx, store.Ref{Resource: a.r.Resource, ID: a.r.ID}, start)
		if renewal.Ended != nil {
			return store.Grant{}, lost(a.r.ID, a.r.Resource, renewal.Ended)
		}
		return renewal.Grant, renewal.Err
	}
	return a.believe(v.token(), start)
}

// believe makes a lease whose token is written one that is held.
func (a *attempt) believe(token leasehold.Token, start time.Duration) (store.Grant, error) {
	s := a.s
	s.granted(a.r.ID, token)
	now, e := s.known(a.r.ID)
	if e == nil && now.until <= start {
		e = now.end(leasehold.ByTTL)
	}
	if e != nil {
		return store.Grant{}, lost(a.r.ID, a.r.Resource, e)
	}
	return store.Grant{Lease: s.toLease(a.r.Resource, now.note, token, min(now.until-start, a.r.TTL))}, nil
}

// take takes the lease, and then writes the token. Nobody believes in it before.
func (a *attempt) take(ctx context.Context, v *view, start time.Duration) (
	grant store.Grant, again bool, err error,
) {
	s, r := a.s, a.r
	client, err := s.azureLease(r.Resource, r.ID)
	if err != nil {
		return grant, false, err
	}
	sent := s.clock.Now()
	l := &lease{resource: r.Resource, note: newNote(r), until: sent + r.TTL}
	s.remember(l)
	_, err = client.AcquireLease(ctx, int32(r.TTL/time.Second), &azure.BlobAcquireOptions{
		ModifiedAccessConditions: &azure.ModifiedAccessConditions{IfMatch: &v.etag}})
	switch {
	case status(err) == 409: // somebody else has it
		s.forget(l)
		return grant, false, a.held(v)
	case changed(err):
		s.forget(l)
		return grant, true, nil
	case err != nil:
		return grant, false, err // it may have it: the same id finds out
	}
	if err := a.allowed(ctx, v, l); err != nil {
		return grant, false, err
	}
	last := v.token()
	if last == 0 { // the blob is new, or somebody else wrote over it
		last = leasehold.Token(v.written.Unix()) * 1e6
	}
	token := max(last, r.Floor) + 1
	meta := map[string]*string{metaName: toHeader(r.Resource), metaID: toHeader(r.ID)}
	text := fmt.Sprint(uint64(token))
	meta[metaToken] = &text
	_, err = s.upload(ctx, s.names.resource(r.Resource), encode(l.note), meta, conditions(&v.etag, r.ID))
	if changed(err) { // the lease was over, or somebody wrote
		s.forget(l)
		_, err = s.unlease(ctx, r.Resource, r.ID)
		return grant, true, err
	}
	if err != nil {
		return grant, false, err
	}
	grant, err = a.believe(token, start)
	return grant, false, err
}

// allowed gives a lease back that must not be believed in: one whose id has a mark, or that would have too
// large a token. A release writes the mark first and then gives the lease back, and this looks for the
// mark after it took the lease: one of the two sees the other.
func (a *attempt) allowed(ctx context.Context, v *view, l *lease) error {
	m, err := a.s.markOf(ctx, a.r.ID)
	if err != nil {
		return err
	}
	switch {
	case m != nil:
		e := m.ending(a.r.ID)
		a.s.over(a.r.ID, e)
		err = lost(a.r.ID, a.r.Resource, e)
	case max(v.token(), a.r.Floor) >= leasehold.MaxToken:
		a.s.forget(l)
		err = &leasehold.Error{Code: leasehold.Refused, Message: a.r.Resource + " has had the largest token (2^53 - 1)"}
	default:
		return nil
	}
	if _, failed := a.s.unlease(ctx, a.r.Resource, a.r.ID); failed != nil {
		return failed
	}
	return err
}

// held returns the error of who is in the way. Azure does not tell what is left of its time: its TTL is
// the most.
func (a *attempt) held(v *view) error {
	holder := a.s.toLease(a.r.Resource, v.note, v.token(), a.s.remaining(v))
	return &leasehold.Error{Code: leasehold.Held, Lease: &holder,
		Message: fmt.Sprintf("%s is held by %s", a.r.Resource, v.note.Holder)}
}

func (s *Store) remaining(v *view) time.Duration {
	if l, e := s.known(v.note.ID); l != nil && e == nil {
		return max(l.until-s.clock.Now(), 1)
	}
	return max(v.note.ttl(), time.Millisecond)
}

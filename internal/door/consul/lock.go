package consul

import (
	"context"
	"errors"
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// acquireKey takes the lock of a key for a session: it puts the record together with a lease on the resource of the
// same path. A session that has it already writes the key, and keeps its lease and its token.
func (c *call) acquireKey() error {
	p, err := c.readPut()
	if err != nil {
		return err
	}
	a := &acquire{call: c, put: p, session: c.query.Get("acquire"), id: newID()}
	if a.session == "" {
		return failed(leasehold.Invalid, "missing session")
	}
	err = c.decide(p.key, a.step)
	if err != nil {
		return err
	}
	if a.held != nil {
		c.refusal = a.held
		return c.no(a.held.Message)
	}
	c.w.Header().Set(tokenHeader, strconv.FormatUint(uint64(a.token), 10))
	return c.send(true)
}

var errOvertaken = errors.New("others were always faster")

// decide runs a step about a key until it decides.
func (c *call) decide(key string, step door.Step) error {
	return c.door.backend.Patiently(c.ctx, func() error {
		err := door.Decide(c.ctx, errOvertaken, step)
		if errors.Is(err, errOvertaken) {
			return busy(key)
		}
		return err
	})
}

// An acquire is a lock on its way.
type acquire struct {
	*call
	put     put
	session string
	id      string // of the lease that is asked for

	looked bool             // once
	token  leasehold.Token  // of the lease that it got
	held   *leasehold.Error // or why it got none
}

// step looks who has the key, and asks for it.
//
// The lease has the same id in all tries that may have happened, so that a try which did, although nobody could tell,
// is found again. That of an earlier request of the same session is found by the session.
func (a *acquire) step(bool) (done bool, err error) {
	s, now, err := a.lookFirst()
	if err != nil {
		return false, err
	}
	a.holder = s.holder
	if a.holds(now) {
		return a.keep(now)
	}
	answer, err := a.do(&core.PutRecord{
		Namespace: a.namespace(), Path: a.put.key, Value: a.put.content.value, Large: a.put.content.large,
		Session: a.session, Link: linkTo(a.put.key, a.id, &s),
	})
	switch {
	case err == nil && answer.Lease == nil:
		return false, engine.Undecided("the engine answered without a lease")
	case err == nil:
		a.token = answer.Lease.Token
		return true, nil
	case errors.Is(err, leasehold.ErrLost), errors.Is(err, leasehold.ErrNotFound):
		// The session has ended, or a lease that an earlier try got: what is there now decides.
		a.id = newID()
		return false, nil
	case errors.Is(err, leasehold.ErrHeld), errors.Is(err, leasehold.ErrRefused):
		return a.refused(err)
	}
	return false, err
}

// holds reports whether the session has the key.
func (a *acquire) holds(now *leasehold.Record) bool {
	return now != nil && now.Session == a.session && now.Lease != ""
}

// keep writes a key that the session has, if it still has.
func (a *acquire) keep(now *leasehold.Record) (done bool, err error) {
	answer, err := a.do(&core.Txn{Namespace: a.namespace(),
		If: []core.Compare{{What: core.RecordLease, Is: core.Equal, Path: a.put.key, Text: now.Lease}},
		Then: []core.Op{{Do: core.Put, Path: a.put.key, Value: a.put.content.value, Large: a.put.content.large,
			KeepLink: true}},
	})
	if err != nil || answer.Txn == nil || !answer.Txn.Succeeded {
		return false, err
	}
	a.token = answer.Txn.Results[0].Record.Token
	return true, nil
}

// lookFirst is look, which the first time asks no other server: what a session is does not change, and the command
// finds out whether it is still there and who has the key. A server that is behind, and has not heard of the session,
// asks after all.
func (a *acquire) lookFirst() (s session, now *leasehold.Record, err error) {
	if !a.looked {
		a.looked = true
		if s, now, err = a.lookBy(engine.WithStale(a.ctx)); err == nil {
			return s, now, nil
		}
	}
	return a.look()
}

// look reads the session and the key.
func (a *acquire) look() (session, *leasehold.Record, error) { return a.lookBy(a.ctx) }

func (a *acquire) lookBy(ctx context.Context) (s session, now *leasehold.Record, err error) {
	var found leasehold.Session
	var failure *leasehold.Error
	err = a.door.backend.Read(ctx, func(v core.View) {
		if found, failure = v.Session(a.namespace(), a.session); failure == nil {
			now, _ = v.Record(a.namespace(), a.put.key, 0)
		}
	})
	if err != nil {
		return s, nil, err
	}
	if failure != nil {
		return s, nil, noSession(a.session)
	}
	return sessionOf(found), now, nil
}

// linkTo returns the lease that the lock of a key is. When the session ends, the key stays or goes with it, and the
// lock-delay keeps others out for a while.
func linkTo(key, id string, s *session) *core.Link {
	link := &core.Link{Resource: key, ID: id, Holder: s.holder, Stay: s.Behavior != remove, Grace: s.LockDelay,
		MayExpire: true}
	if link.Stay {
		link.Mirror = key // the key also shows that somebody has it through another door
	}
	if len(s.ID) <= leasehold.MaxForeign {
		link.Foreign = s.ID
	}
	return link
}

// refused decides what it means that the engine refused. If the session has the key by now, since another request of
// it was faster, the next step finds that. If somebody else has or wants the resource, the answer is no.
func (a *acquire) refused(refusal error) (done bool, err error) {
	_, now, err := a.look()
	if err != nil {
		return false, err
	}
	e := door.Coded(refusal)
	switch {
	case a.holds(now):
		return false, nil
	case e.Code == leasehold.Held:
		a.held = e
		return true, nil
	}
	used, err := a.inUse(a.put.key)
	if err != nil {
		return false, err
	}
	if used.Holding == 0 && used.Waiting == 0 {
		return false, refusal
	}
	// It shows as other records, as those of etcd: no record of Consul can stand for it until they are gone.
	a.held = &leasehold.Error{Code: leasehold.Held, Message: e.Message}
	return true, nil
}

// releaseKey gives the lock of a key back, if the session has it, and writes the key.
func (c *call) releaseKey() error {
	p, err := c.readPut()
	if err != nil {
		return err
	}
	id := c.query.Get("release")
	if id == "" {
		return failed(leasehold.Invalid, "missing session")
	}
	r := &releasing{call: c, put: p, session: id}
	err = c.decide(p.key, r.step)
	if err != nil {
		return err
	}
	if !r.done {
		return c.no("the session does not hold this key")
	}
	return c.send(true)
}

// A releasing is the end of a lock on its way.
type releasing struct {
	*call
	put     put
	session string

	tried bool // nobody could tell whether an earlier try had done it
	done  bool
}

// step releases the lock, if the session has it.
func (r *releasing) step(bool) (done bool, err error) {
	answer, err := r.do(&core.Txn{Namespace: r.namespace(),
		If: []core.Compare{
			{What: core.RecordSession, Is: core.Equal, Path: r.put.key, Text: r.session},
			{What: core.RecordLease, Is: core.NotEqual, Path: r.put.key},
		},
		Then: []core.Op{{Do: core.Put, Path: r.put.key, Value: r.put.content.value, Large: r.put.content.large}},
	})
	switch {
	case errors.Is(err, leasehold.ErrLimited):
		return r.withoutValue(err)
	case err != nil:
		r.tried = r.tried || errors.Is(err, leasehold.ErrUndecided)
		return false, err
	case answer.Txn != nil && answer.Txn.Succeeded:
		r.done = true
	case r.tried:
		r.done, err = r.wasDone()
	}
	return err == nil, err
}

// withoutValue releases the lock and leaves the key as it is, if there is no room for the value that comes with the
// release, as when a disk is full: nobody else would have the lock until there is.
func (r *releasing) withoutValue(limited error) (done bool, err error) {
	now, _, err := r.record(r.put.key)
	if err != nil || now == nil || now.Session != r.session || now.Lease == "" {
		return err == nil, err
	}
	_, err = r.do(&core.Release{Namespace: r.namespace(), ID: now.Lease})
	switch {
	case errors.Is(err, leasehold.ErrLost), errors.Is(err, leasehold.ErrNotFound):
		return false, nil // it has ended since
	case err != nil:
		return false, err
	}
	r.done = true
	reason := "the lock is released, and the value was not written: " + door.Coded(limited).Message
	if readable(reason) {
		r.w.Header().Set(reasonHeader, reason)
	}
	return true, nil
}

// wasDone reports whether a try that nobody could tell the end of released the lock: that of the session was the last
// to end, and was given back. A session that never had the lock, or lost it, released nothing.
func (r *releasing) wasDone() (bool, error) {
	s, err := r.inUse(r.put.key)
	return s.Last != nil && s.Last.Foreign == r.session && s.Last.How == leasehold.Released, err
}

// inUse reads who has and who wants a resource, as far as the asker may know.
func (c *call) inUse(path string) (s leasehold.Status, err error) {
	err = c.look(func(v core.View) { s = v.Status(c.namespace(), path, 0) })
	return s, err
}

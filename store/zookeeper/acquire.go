package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Acquire asks for a lease.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := store.Check(s, r); err != nil {
		return store.Grant{}, err
	}
	a := &attempt{s: s, r: &r, wake: make(chan struct{}, 1), done: make(chan struct{})}
	defer close(a.done)
	if r.Wait <= 0 {
		return a.ask(ctx)
	}
	// A third of the TTL is more than the quarter that has to lie between two writes.
	w := store.Waiting{For: r.Wait, Poll: r.TTL / 3, Wake: a.wake, Leave: store.Leaving(s, r)}
	return store.Await(ctx, w, a.ask)
}

// An attempt is one call of Acquire.
type attempt struct {
	s *Store
	r *store.Request

	watched string // the node that it waits for
	wake    chan struct{}
	done    chan struct{}
}

// ask asks once.
func (a *attempt) ask(ctx context.Context) (store.Grant, error) {
	if err := a.s.ready(ctx); err != nil {
		return store.Grant{}, err
	}
	start := a.s.clock.Now()
	grant, err := run(ctx, func(ctx context.Context) (store.Grant, error) {
		// To the end of this question nobody else asks for the id, also if ctx ends before: what was
		// sent must not be overtaken by what is sent next.
		defer a.s.ids.lock(a.r.ID)()
		return a.once(ctx, start)
	})
	return grant, a.s.failure(err)
}

func (a *attempt) once(ctx context.Context, start time.Duration) (store.Grant, error) {
	l, err := a.mine(start)
	if err != nil {
		return store.Grant{}, err
	}
	created := false
	if l == nil {
		l, err = a.enter(ctx, start)
	} else if l.name == "" {
		err = a.s.find(l)
	}
	if err != nil {
		return store.Grant{}, err
	}
	if l.name == "" {
		if err := a.create(l); err != nil {
			return store.Grant{}, err
		}
		created = true
	}
	return a.judge(l, start, created)
}

// mine returns the lease, or the waiter, that the id has already.
func (a *attempt) mine(start time.Duration) (*lease, error) {
	s := a.s
	l, e := s.known(a.r.ID)
	if e != nil {
		return nil, lost(a.r.ID, a.r.Resource, e)
	}
	if l == nil {
		return nil, nil
	}
	s.mu.Lock()
	late := l.doomed || l.until <= start
	held := l.held
	s.mu.Unlock()
	switch {
	case held && (late || l.session.over.Load()):
		e := l.ending(leasehold.ByTTL)
		s.doom(l, e)
		_ = s.remove(l)
		return nil, lost(a.r.ID, a.r.Resource, e)
	case late || l.session.over.Load(): // a waiter, which starts again at the end of the queue
		s.doom(l, nil)
		return nil, s.remove(l)
	case l.resource != a.r.Resource:
		return nil, invalid("the id %s is used for %s", a.r.ID, l.resource)
	}
	return l, nil
}

// enter makes the id known, unless it is clear that it gets nothing.
func (a *attempt) enter(ctx context.Context, start time.Duration) (*lease, error) {
	s, r := a.s, a.r
	c, err := s.session(ctx, r.TTL)
	if err != nil {
		return nil, err
	}
	places, err := s.fresh(c, r.Resource)
	if err == nil {
		err = a.refusal(c, places)
	}
	if err != nil {
		c.done()
		return nil, err
	}
	l := &lease{resource: r.Resource, note: newNote(r), session: c, until: start + r.TTL}
	s.add(l)
	return l, nil
}

// refusal returns why there is nothing to create.
func (a *attempt) refusal(c *session, places []place) error {
	for i, p := range places {
		switch {
		case p.id != a.r.ID:
		case i == 0:
			return foreign(a.r.ID, a.r.Resource)
		default: // it waits in another process
			return a.held(c, places, i)
		}
	}
	if len(places) == 0 || a.r.Wait > 0 {
		return nil
	}
	m, err := a.s.markOf(c, a.r.ID)
	if err != nil {
		return err
	}
	if m != nil {
		return lost(a.r.ID, a.r.Resource, m.ending(a.r.ID))
	}
	return a.held(c, places, 0)
}

// tries is how often a parent may vanish before its child is created.
const tries = 8

// create creates the node of a lease, unless its id has a mark: the transaction creates the mark and
// deletes it again, which fails if there is one.
func (a *attempt) create(l *lease) error {
	s := a.s
	used, node := s.paths.mark(a.r.ID), s.paths.node(a.r.Resource, a.r.ID)
	for range tries {
		answers, err := l.session.multi(
			&zk.CreateRequest{Path: used, Acl: s.acl}, &zk.DeleteRequest{Path: used, Version: -1},
			&zk.CreateRequest{Path: node, Data: encode(l.note), Acl: s.acl, Flags: zk.FlagEphemeral | zk.FlagSequence},
		)
		switch {
		case err == nil:
			l.name = path.Base(answers[2].String)
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if err := s.parents(l.session, used, node); err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNodeExists):
			s.drop(l)
			return a.marked(l.session)
		case errors.Is(err, zk.ErrNoAuth):
			s.drop(l)
			return err
		default:
			return err // it may have been created: the same id finds out
		}
	}
	return &leasehold.Error{Code: leasehold.Undecided,
		Message: "ZooKeeper deleted the parents of the lease again and again: try again"}
}

func (a *attempt) marked(c *session) error {
	m, err := a.s.markOf(c, a.r.ID)
	if err != nil {
		return err
	}
	if m == nil { // it was just cleaned
		m = &mark{}
	}
	return lost(a.r.ID, a.r.Resource, m.ending(a.r.ID))
}

// judge decides what became of a node. What is looked at after an own write shows everything before it.
func (a *attempt) judge(l *lease, start time.Duration, created bool) (store.Grant, error) {
	s := a.s
	if !created {
		if _, err := l.session.multi(&zk.CheckVersionRequest{Path: l.path(), Version: -1}); err != nil {
			return store.Grant{}, a.gone(l, err)
		}
	}
	places, err := s.places(l.session, a.r.Resource)
	if err != nil {
		return store.Grant{}, err
	}
	for i, p := range places {
		if p.name != l.name {
			continue
		}
		if i == 0 {
			return a.grant(l, start)
		}
		return store.Grant{}, a.queue(l, places, i, start, created)
	}
	return store.Grant{}, a.gone(l, zk.ErrNoNode)
}

// gone returns the error for a node that may be gone.
func (a *attempt) gone(l *lease, err error) error {
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	e, err := a.s.over(l)
	if err != nil {
		return err
	}
	return lost(a.r.ID, a.r.Resource, e)
}

// over ends a lease whose node is gone, and returns how it ended.
func (s *Store) over(l *lease) (*leasehold.Ending, error) {
	m, err := s.markOf(l.session, l.note.ID)
	if err != nil {
		return nil, err
	}
	e := l.ending(leasehold.ByTTL)
	if m != nil {
		e = m.ending(l.note.ID)
	}
	s.doom(l, e)
	s.drop(l)
	return e, nil
}

// queue keeps the place of a waiter.
func (a *attempt) queue(l *lease, places []place, at int, start time.Duration, created bool) error {
	if a.r.Wait <= 0 && created { // somebody else was faster
		a.s.doom(l, nil)
		if err := a.s.remove(l); err != nil {
			return err
		}
		return a.held(l.session, places, 0)
	}
	a.s.extend(l, start+a.r.TTL, false)
	if err := a.watch(l.session, places[at-1]); err != nil {
		return err
	}
	return a.held(l.session, places, at)
}

// grant returns the lease of the first one.
func (a *attempt) grant(l *lease, start time.Duration) (store.Grant, error) {
	s := a.s
	if l.token == 0 {
		exists, stat, err := l.session.conn.Exists(l.path())
		if err != nil {
			return store.Grant{}, err
		}
		if !exists {
			return store.Grant{}, a.gone(l, zk.ErrNoNode)
		}
		l.token = leasehold.Token(stat.Czxid)
	}
	if err := a.tokenOK(l); err != nil {
		return store.Grant{}, err
	}
	s.mu.Lock()
	until, again := l.until, l.held
	s.mu.Unlock()
	if !again {
		until = start + a.r.TTL
		if !s.extend(l, until, true) {
			return store.Grant{}, a.gone(l, zk.ErrNoNode)
		}
	}
	remaining := min(until, l.session.evidence.until()) - start
	if remaining <= 0 {
		return store.Grant{}, &leasehold.Error{Code: leasehold.Undecided, Message: fmt.Sprintf(
			"it is not known whether ZooKeeper's leader has heard of the session of %s: ask again", a.r.ID)}
	}
	return store.Grant{Lease: s.toLease(l.resource, l.note, l.token, remaining)}, nil
}

// tokenOK refuses a token that is not larger than what was seen, or that others cannot hold exactly.
func (a *attempt) tokenOK(l *lease) error {
	if l.token > a.r.Floor && l.token <= leasehold.MaxToken {
		return nil
	}
	a.s.doom(l, l.ending(leasehold.Released))
	if err := a.s.remove(l); err != nil {
		return err
	}
	if l.token > leasehold.MaxToken {
		return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
			"ZooKeeper is at zxid %#x, above the largest token (2^53 - 1): use a new ensemble", uint64(l.token))}
	}
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
		"ZooKeeper is at zxid %d, but token %d was granted before: it was restored from an older copy or replaced. "+
			"Use fences with a fresh state", l.token, a.r.Floor)}
}

// held returns the error of who is in the way. at is the place of the own waiter, 0: there is none.
func (a *attempt) held(c *session, places []place, at int) error {
	e := &leasehold.Error{Code: leasehold.Held, Waiting: len(places) - 1, Position: at}
	lease, _, err := a.s.read(c, a.r.Resource, places[0])
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err != nil { // it has just ended
		lease = a.s.toLease(a.r.Resource, note{ID: places[0].id}, 0, time.Millisecond)
	}
	e.Lease, e.Message = &lease, fmt.Sprintf("%s is held by %s", a.r.Resource, lease.Holder)
	return e
}

// watch makes the attempt wake up when what is before it in the queue has gone.
func (a *attempt) watch(c *session, before place) error {
	if a.watched == before.name {
		return nil
	}
	exists, _, events, err := c.conn.ExistsW(path.Join(a.s.paths.resource(a.r.Resource), before.name))
	if err != nil {
		return err
	}
	a.watched = before.name
	if !exists {
		a.rouse()
		return nil
	}
	go func() {
		select {
		case <-events:
			a.rouse()
		case <-a.done:
		}
	}()
	return nil
}

func (a *attempt) rouse() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

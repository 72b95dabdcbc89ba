package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Holds with the same TTL and renewal share a session, so that a program with ten thousand leases
// sends one renewal and not ten thousand.

// sessionTerms are what holds must have in common to share a session.
type sessionTerms struct {
	ttl      time.Duration
	fraction float64
}

// OpenSession opens a session that the program closes itself. Bind leases to it with In and
// records with Session.Put; the client renews it until Session.Close.
func (c *Client) OpenSession(ctx context.Context, given ...Option) (*Session, error) {
	o := c.options(nil, 0, given)
	if c.sessionful == nil {
		return nil, c.lacks(store.SessionPower)
	}
	if o.renewal.needsOwnSession() {
		o.renewal = RenewAt(o.renewal.fraction)
	}
	for {
		s, err := c.newSession(o, true)
		if err == nil {
			err = c.openSession(ctx, s, o.labels)
		}
		switch {
		case err == nil:
			return s, nil
		case !errors.Is(err, ErrLost) || ctx.Err() != nil:
			return nil, err
		}
	}
}

// join returns a session for a hold with these options, already entered. It opens one if none fits.
// Only one caller opens it; those who come meanwhile wait for that one's answer.
func (c *Client) join(ctx context.Context, o options) (*Session, error) {
	if o.session != nil {
		if !o.session.enter() {
			return nil, o.session.lostError(leasehold.SessionClosed)
		}
		return o.session, nil
	}
	for {
		s, ours, err := c.pick(o)
		if err != nil {
			return nil, err
		}
		if ours {
			err := c.openSession(ctx, s, nil)
			switch {
			case err == nil:
				return s, nil
			case !errors.Is(err, ErrLost) || ctx.Err() != nil:
				return nil, err
			}
			continue // it expired before the answer was read
		}
		if err := s.awaitOpen(ctx); err != nil {
			s.leave()
			return nil, err
		}
		// If opening failed, it failed under the context of another caller: this one tries for
		// itself.
		if s.failed == nil {
			return s, nil
		}
		s.leave()
	}
}

// awaitOpen waits until somebody has opened the session, or failed to.
func (s *Session) awaitOpen(ctx context.Context) error {
	select {
	case <-s.ready: // as nearly always: ctx.Done would cost a timer
		return nil
	default:
	}
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pick finds a session that is open or being opened, or makes one that the caller has to open.
// Either way the caller has entered it.
func (c *Client) pick(o options) (s *Session, ours bool, err error) {
	key := sessionTerms{o.ttl, o.renewal.fraction}
	if !o.renewal.needsOwnSession() {
		c.mu.Lock()
		candidates := c.shared[key]
		c.mu.Unlock()
		for _, s := range candidates {
			if s.enter() {
				return s, false, nil
			}
		}
	}
	s, err = c.newSession(o, false)
	return s, true, err
}

// newSession makes a session that one caller has entered. It is not open yet.
func (c *Client) newSession(o options, own bool) (*Session, error) {
	if s, ok := c.store.(interface{ PingWithin(time.Duration) }); ok {
		s.PingWithin(usableTTL(o.ttl))
	}
	s := &Session{
		client: c, ttl: o.ttl, renewal: o.renewal, own: own, private: !own && o.renewal.needsOwnSession(),
		local: c.sessionful == nil, holds: map[string]*Hold{}, ready: make(chan struct{}), idle: c.clock.Now(),
	}
	// A session of the program has no acquire yet, and is not closed when it is unused.
	if !own {
		s.acquiring = 1
	}
	s.timer.fire = s.fire
	s.done, s.finish = context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	// The ids begin with the client's name, by which one watch follows all of its sessions.
	c.opened++
	s.id = fmt.Sprint(c.name, c.opened)
	c.sessions[s.id] = s
	c.ttls[s.ttl]++
	if !own && !s.private {
		// pick reads the list without the lock, so it is replaced and never changed.
		key := sessionTerms{o.ttl, o.renewal.fraction}
		c.shared[key] = append(c.shared[key][:len(c.shared[key]):len(c.shared[key])], s)
	}
	if !c.watching {
		c.watching = true
		c.startWatch()
	}
	return s, nil
}

// openSession opens a session for everyone who waits for it.
func (c *Client) openSession(ctx context.Context, s *Session, labels map[string]string) error {
	err := s.open(ctx, labels)
	if err == nil && !s.local {
		c.awaitWatch(ctx, s)
	}
	if err != nil {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		s.end(leasehold.SessionClosed, "")
		// If the server opened it although no answer came, it expires: nobody renews it.
	}
	close(s.ready)
	return err
}

// awaitWatch waits for the watch to begin before anything is held, so that no message is missed.
// It does not insist: the watch may take longer than the session can spare.
func (c *Client) awaitWatch(ctx context.Context, s *Session) {
	within := time.NewTimer(min(s.attemptLimit(), time.Second))
	defer within.Stop()
	select {
	case <-c.watchBegun:
	case <-ctx.Done():
	case <-within.C:
		c.beginOnce.Do(func() { close(c.watchBegun) }) // do not make others wait as well
	}
}

// forget drops a session that ended.
func (c *Client) forget(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s.id)
	if c.ttls[s.ttl]--; c.ttls[s.ttl] == 0 {
		delete(c.ttls, s.ttl)
	}
	key := sessionTerms{s.ttl, s.renewal.fraction}
	var rest []*Session
	for _, other := range c.shared[key] {
		if other != s {
			rest = append(rest, other)
		}
	}
	if c.shared[key] = rest; rest == nil {
		delete(c.shared, key)
	}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A Session binds leases and records to one promise of liveness: they last while it is renewed,
// and end with it, all at once. The client renews it by one request for all of them.
//
// Most programs need no Session of their own: holds of the same TTL share one that the client
// opens.
type Session struct {
	client  *Client
	id      string
	ttl     time.Duration
	renewal Renewal
	timer   timer
	private bool // it carries one hold, which is not renewed in time like others
	own     bool // the program opened it, and closes it
	local   bool // the store does not know it; see own_deadline.go

	// deadline is when the session ends, on the client's clock: 0 until it is open, -1 once it
	// is over. It is never later than the store's. A local session has none.
	deadline atomic.Int64

	mu                  sync.Mutex // guards what follows
	holds               map[string]*Hold
	acquiring           int  // the number of acquires under way
	full                bool // the server refused to put more into it
	halved              int  // how often maxRenewed is halved
	pending             pendingReleases
	interventions       uint64 // the newest count that a server told; see interventions.go
	countsInterventions bool   // whether the server counts them
	rechecks            recheckQueue
	ended               *LostError
	renewing            bool
	renewAt             time.Duration
	touched             bool
	idle                time.Duration // since when nothing uses it

	done   context.Context // ends with the session
	finish context.CancelCauseFunc
	ready  chan struct{} // closed when opening it succeeded or failed
	failed error
}

// maxHolds is how many holds share a session. The server allows some more, which are left for
// marks of cancelled acquires.
const maxHolds = leasehold.MaxClaimsPerSession - 384

// open opens the session on a server.
func (s *Session) open(ctx context.Context, labels map[string]string) error {
	c := s.client
	if s.local {
		return s.openLocal()
	}
	if c.config.OnSession != nil {
		c.config.OnSession(s.id)
	}
	var (
		sent   time.Duration
		answer store.SessionAnswer
	)
	err := c.retry(ctx, s.attemptLimit(), func(ctx context.Context) (err error) {
		sent = c.clock.Now()
		answer, err = c.sessionful.OpenSession(ctx, s.id, s.ttl, store.LabelsOf(labels))
		return err
	})
	if err == nil && !s.extend(sent, answer) {
		err = s.lostError(leasehold.SessionExpired)
	}
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	c.scheduler.set(&s.timer, s.clock())
	return nil
}

// clock reads the client's clock.
func (s *Session) clock() time.Duration { return s.client.clock.Now() }

// lostError returns how the session ended; if it did not end yet, the given way.
func (s *Session) lostError(otherwise leasehold.How) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	return &LostError{How: otherwise, Resource: "session " + s.id}
}

// howEnded returns how the holds of an ended session are lost.
func (s *Session) howEnded() *LostError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &LostError{How: s.ended.How, By: s.ended.By, Reason: s.ended.Reason}
}

func (s *Session) end(how leasehold.How, reason string) {
	s.endAs(&LostError{How: how, Reason: reason})
}

// endAs ends the session and all its holds on this client's side. The server's side is not
// renewed from here on. It returns what a local session has to release.
func (s *Session) endAs(why *LostError) (left []store.Ref) {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return nil
	}
	left = s.leftLocked()
	why.Resource = "session " + s.id
	s.ended = why
	// From here on every look at the clock says that it is over, before the holds are told one by
	// one.
	s.deadline.Store(-1)
	holds := s.holds
	s.holds, s.pending, s.rechecks.queue = nil, pendingReleases{}, nil
	s.mu.Unlock()
	if why.How == leasehold.SessionExpired {
		s.client.expired.Add(1)
	}
	s.client.scheduler.remove(&s.timer)
	s.client.forget(s)
	// Without the lock, since lose takes it, and since it calls cancel functions of the program.
	for _, h := range holds {
		h.lose(&LostError{How: why.How, By: why.By, Reason: why.Reason})
	}
	s.finish(why)
	return left
}

// enter counts an acquire that is under way, unless the session is over or full. A counted acquire
// keeps the session from being closed as unused.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil || s.full || !s.own && len(s.holds)+s.acquiring >= maxHolds {
		return false
	}
	s.acquiring++
	return true
}

// filled reports whether an acquire was refused because the shared session is full. Such a
// session is not entered again, and is closed once it is unused.
func (s *Session) filled(err error) bool {
	if s.own || s.private || !s.hasNoRoom(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = true
	return true
}

// hasNoRoom reports whether a server refused something because the session is full. Only then does
// the error name it; other limits are not about the session. The code alone does not tell them
// apart.
func (s *Session) hasNoRoom(err error) bool {
	var e *leasehold.Error
	return errors.As(err, &e) && e.Code == leasehold.Limited && strings.Contains(e.Message, strconv.Quote(s.id))
}

func (s *Session) leave() {
	s.mu.Lock()
	s.acquiring--
	s.noteIdleLocked()
	s.mu.Unlock()
	s.lookIfUnused()
}

// add makes a hold receive the events of an id. It reports false if the session is over.
func (s *Session) add(h *Hold, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return false
	}
	s.holds[id] = h
	return true
}

func (s *Session) remove(id string) {
	s.mu.Lock()
	delete(s.holds, id)
	s.noteIdleLocked()
	s.mu.Unlock()
	s.lookIfUnused()
}

// noteIdleLocked notes since when nothing uses the session, if nothing does.
func (s *Session) noteIdleLocked() {
	if len(s.holds) == 0 && s.acquiring == 0 {
		s.idle = s.clock()
	}
}

func (s *Session) hold(id string) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[id]
}

// close ends the session, on the server too.
func (s *Session) close(ctx context.Context) error {
	if s.local {
		return s.closeLocal(ctx)
	}
	// It ends here before the server is asked, so that nobody works under a lease that is being
	// given back.
	open := s.deadline.Load() != 0
	s.end(leasehold.SessionClosed, "")
	if !open {
		return nil
	}
	err := s.client.retry(ctx, s.attemptLimit(), func(ctx context.Context) error {
		return s.client.sessionful.CloseSession(ctx, s.id)
	})
	// Gone is what the caller wanted.
	if isGone(err) {
		return nil
	}
	return err
}

// ID returns the session's id on the server.
func (s *Session) ID() string { return s.id }

// Context returns a context that ends with the session; its cause says how. It has no values.
func (s *Session) Context() context.Context { return s.done }

// Valid reports whether the session, and so what is bound to it, is still valid. It reads the
// clock.
func (s *Session) Valid() bool { return s.alive() }

// Remaining returns how long the session is valid without a renewal; 0 if it is over.
func (s *Session) Remaining() time.Duration {
	if !s.alive() {
		return 0
	}
	return max(0, time.Duration(s.deadline.Load())-s.clock())
}

// Close ends the session and releases everything that is bound to it, in one step. Call it when
// the work has ended.
func (s *Session) Close(ctx context.Context) error { return s.close(ctx) }

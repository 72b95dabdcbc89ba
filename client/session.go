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
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Session is a promise of liveness: what is bound to it lasts while it is renewed,
// which the client does by one message for all, and ends with it, all at once.
//
// Most programs need no Session of their own: holds of the same TTL share one that the
// client opens for them.
type Session struct {
	client  *Client
	id      string
	ttl     time.Duration
	renewal Renewal
	timer   timer
	private bool // it carries one hold, whose renewals are not like others'
	own     bool // a program opened it, and closes it

	// deadline is the moment, on the client's clock, from which on we do not believe in
	// it any more. It is never later than the server's.
	deadline atomic.Int64

	mu                  sync.Mutex // guards what follows
	holds               map[string]*Hold
	acquiring           int  // acquires under way
	full                bool // the server has no room in it for more
	pending             pendingReleases
	interventions       uint64 // of what others did to its claims, as far as is known
	countsInterventions bool   // whether the server counts that
	rechecks            recheckQueue
	ended               *LostError
	renewing            bool
	renewAt             time.Duration
	touched             bool
	idle                time.Duration // since when nobody uses it

	done   context.Context // ends with the session
	finish context.CancelCauseFunc
	ready  chan struct{} // closed when it was opened, or could not be
	failed error
}

// maxHolds is how many holds share a session; the rest of what it may have is for
// waits that are being taken back.
const maxHolds = leasehold.MaxClaimsPerSession - 384

// open sends the opening until it is answered.
func (s *Session) open(ctx context.Context, labels map[string]string) error {
	c := s.client
	var (
		sent   time.Duration
		answer v1.Session
	)
	err := c.servers.Retry(ctx, s.attemptLimit(), func(ctx context.Context, w *v1.Caller) (err error) {
		sent = c.clock.Now()
		answer, err = w.OpenSession(ctx, v1.SessionRequest{ID: s.id, TTL: v1.TTL{Duration: v1.Duration(s.ttl)}, Labels: labels})
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

func (s *Session) clock() time.Duration { return s.client.clock.Now() }

// lostError is how the session ended, if it did.
func (s *Session) lostError(otherwise leasehold.How) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	return &LostError{How: otherwise, Resource: "session " + s.id}
}

// howEnded is how a session that is over takes its holds with it.
func (s *Session) howEnded() *LostError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &LostError{How: s.ended.How, By: s.ended.By, Reason: s.ended.Reason}
}

func (s *Session) end(how leasehold.How, reason string) {
	s.endAs(&LostError{How: how, Reason: reason})
}

// endAs ends the session, and all holds with it, for this client. What the server has
// of it is not renewed any more.
func (s *Session) endAs(why *LostError) {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return
	}
	why.Resource = "session " + s.id
	s.ended = why
	s.deadline.Store(-1)
	holds := s.holds
	s.holds, s.pending, s.rechecks.queue = nil, pendingReleases{}, nil
	s.mu.Unlock()
	if why.How == leasehold.SessionExpired {
		s.client.expired.Add(1)
	}
	s.client.scheduler.remove(&s.timer)
	s.client.forget(s)
	for _, h := range holds {
		h.lose(&LostError{How: why.How, By: why.By, Reason: why.Reason})
	}
	s.finish(why)
}

// enter counts an acquire that is under way, unless the session can take no more.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil || s.full || !s.own && len(s.holds)+s.acquiring >= maxHolds {
		return false
	}
	s.acquiring++
	return true
}

// filled reports whether an acquire was refused because the session, which others share, has
// no room. It is not entered again, and ends when what it holds has ended.
func (s *Session) filled(err error) bool {
	if s.own || s.private || !s.hasNoRoom(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = true
	return true
}

// hasNoRoom reports whether a server refused something because the session has as much as it
// can have. The error names it then: other limits, and a busy server, are no matter of it.
func (s *Session) hasNoRoom(err error) bool {
	var e *leasehold.Error
	return errors.As(err, &e) && e.Code == leasehold.Limited && strings.Contains(e.Message, strconv.Quote(s.id))
}

func (s *Session) leave() {
	s.mu.Lock()
	s.acquiring--
	s.idle = s.clock()
	s.mu.Unlock()
}

// add makes the session's events known to a hold. It is false if the session is over.
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
	defer s.mu.Unlock()
	delete(s.holds, id)
	if len(s.holds) == 0 {
		s.idle = s.clock()
	}
}

func (s *Session) hold(id string) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[id]
}

// close ends the session on the server too.
func (s *Session) close(ctx context.Context) error {
	open := s.deadline.Load() != 0
	s.end(leasehold.SessionClosed, "")
	if !open {
		return nil
	}
	err := s.client.servers.Retry(ctx, s.attemptLimit(), func(ctx context.Context, w *v1.Caller) error { return w.CloseSession(ctx, s.id) })
	if isGone(err) {
		return nil
	}
	return err
}

// ID is the session's name on the server.
func (s *Session) ID() string { return s.id }

// Context ends when the session does; its cause says how. It carries the values of
// none.
func (s *Session) Context() context.Context { return s.done }

// Valid tells whether the session, and what is bound to it, may still be believed
// in. It reads the clock.
func (s *Session) Valid() bool { return s.alive() }

// Remaining is how long the session is valid if it is not renewed; 0 if it is over.
func (s *Session) Remaining() time.Duration {
	if !s.alive() {
		return 0
	}
	return max(0, time.Duration(s.deadline.Load())-s.clock())
}

// Close ends the session and releases, in one step, all that is bound to it. Call it
// when the work has ended.
func (s *Session) Close(ctx context.Context) error { return s.close(ctx) }

package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Renewal says when a lease is renewed.
type Renewal struct {
	way      way
	fraction float64
}

type way uint8

const (
	inTime way = iota // by itself
	onActivity
	byHand
	neverRenew
)

// RenewAt renews by itself when a fraction of the TTL has passed, give or take a
// tenth of that, so that many clients do not all come at once.
func RenewAt(fraction float64) Renewal { return Renewal{fraction: min(max(fraction, 0.01), 0.75)} }

// RenewContinuously renews again and again, so that nearly the whole TTL remains at
// any moment: for those who must survive the longest gap without a server, at the
// price of a message every twentieth of the TTL.
func RenewContinuously() Renewal { return RenewAt(0.05) }

// RenewOnActivity renews only while Hold.Touch is called: work that hangs loses its
// lease although its process lives.
func RenewOnActivity() Renewal { return Renewal{way: onActivity, fraction: 1.0 / 3} }

// RenewByHand renews only when Hold.Renew is called.
func RenewByHand() Renewal { return Renewal{way: byHand, fraction: 1.0 / 3} }

// RenewNever lets the lease end with its TTL: a reservation. It also outlives the
// client, whose Close does not end it.
func RenewNever() Renewal { return Renewal{way: neverRenew, fraction: 1.0 / 3} }

// private tells whether a hold can share its session with others.
func (r Renewal) private() bool { return r.way != inTime }

// Touch says that the work goes on, for RenewOnActivity.
func (h *Hold) Touch() {
	s := h.session
	s.mu.Lock()
	first := !s.touched
	s.touched = true
	due := s.renewAt
	s.mu.Unlock()
	if first {
		s.client.keeper.set(&s.alarm, due)
	}
}

// Renew renews the lease now, for RenewByHand. The error is an ErrLost if there is
// nothing to renew any more.
func (h *Hold) Renew(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	err := h.session.renewUntil(ctx)
	if lost := h.Err(); lost != nil {
		return lost
	}
	return err
}

// attempt is how long one message about the session may take: a server that is gone
// must leave time to ask another one.
func (s *Session) attempt() time.Duration {
	return min(max(ttlOf(s.ttl)/5, 20*time.Millisecond), 10*time.Second)
}

// pace is how long to wait between two renewals.
func (s *Session) pace() time.Duration {
	d := float64(ttlOf(s.ttl)) * s.renewal.fraction
	return time.Duration(d * (0.9 + 0.2*rand.Float64()))
}

// ring does what is due: the end, or a renewal.
func (s *Session) ring(now time.Duration) time.Duration {
	if !s.alive() {
		return never
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline := time.Duration(s.deadline.Load())
	if s.renewing {
		return deadline
	}
	if now < s.renewAt {
		return min(deadline, s.renewAt)
	}
	if s.unused(now) {
		s.renewing = true
		s.client.spawn(func() { _ = s.close(s.client.context) })
		return deadline
	}
	if !s.wanted() {
		return deadline
	}
	s.renewing = true
	s.client.spawn(func() { s.renew(s.client.context) })
	return deadline
}

// wanted tells whether the session is to be renewed now. While something waits for
// its turn it always is.
func (s *Session) wanted() bool {
	switch {
	case s.users > 0 || s.renewal.way == inTime:
		return true
	case s.renewal.way == onActivity && s.touched:
		s.touched = false
		return true
	}
	return false
}

// unused tells whether nobody has needed the session for a while.
func (s *Session) unused(now time.Duration) bool {
	if s.own || s.users > 0 || len(s.holds) > 0 {
		s.idle = now
		return false
	}
	return now-s.idle >= s.ttl
}

// renew sends a renewal until it is answered or the session is over.
func (s *Session) renew(ctx context.Context) {
	defer func() {
		s.mu.Lock()
		s.renewing = false
		s.mu.Unlock()
		s.client.keeper.set(&s.alarm, s.clock())
	}()
	retry := v1.Backoff{Most: min(ttlOf(s.ttl)/20, time.Second)}
	for n := 1; s.alive(); n++ {
		err := s.renewOnce(ctx)
		if err == nil {
			s.repay()
			return
		}
		if ctx.Err() != nil || isGone(err) {
			return
		}
		s.client.log.Warn("the session could not be renewed", "session", s.id, "left", time.Duration(s.deadline.Load())-s.clock(), "err", err)
		if !retry.Sleep(ctx, n) {
			return
		}
	}
}

// renewUntil renews the session for a caller who waits for it.
func (s *Session) renewUntil(ctx context.Context) error {
	for n := 1; ; n++ {
		err := s.renewOnce(ctx)
		if !v1.Transient(err) || !s.alive() || ctx.Err() != nil || !backoff.Sleep(ctx, n) {
			return err
		}
	}
}

// renewOnce sends one renewal and takes its answer.
func (s *Session) renewOnce(ctx context.Context) error {
	var (
		sent   time.Duration
		answer v1.Session
	)
	err := s.client.servers.Once(ctx, s.attempt(), func(ctx context.Context, w *v1.Caller) (err error) {
		sent = s.clock()
		answer, err = s.sendRenewal(ctx, w)
		return err
	})
	switch {
	case isGone(err) && s.alive():
		// The server's end is after ours. If it says that the session ended, and ours has
		// not, somebody closed it; or the server lost its memory.
		s.endAs(&LostError{How: leasehold.SessionClosed, Reason: err.Error()})
	case err == nil && !s.believe(sent, answer):
		return s.lostError(leasehold.SessionExpired)
	}
	return err
}

// sendRenewal has the server name only what others did since the last answer.
func (s *Session) sendRenewal(ctx context.Context, w *v1.Caller) (v1.Session, error) {
	s.mu.Lock()
	count := s.count
	s.mu.Unlock()
	if count == 0 {
		return w.RenewSession(ctx, s.id)
	}
	return w.RenewSessionSince(ctx, s.id, count)
}

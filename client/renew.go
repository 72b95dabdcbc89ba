package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// A session is renewed at a third of its TTL unless the program says otherwise, which leaves room
// for several failed attempts, on other servers too, before anything is lost.

// A Renewal says when a lease is renewed.
type Renewal struct {
	mode     renewalMode
	fraction float64
}

var usualRenewal = RenewAt(1.0 / 3)

// A renewalMode is what starts a renewal.
type renewalMode uint8

const (
	renewInTime renewalMode = iota // the clock
	renewOnActivity
	renewByHand
	renewNever
)

// RenewAt renews when a fraction of the TTL has passed, give or take a tenth of that, so that many
// clients do not renew at the same moment. The fraction is at most 0.75: later than that, one lost
// answer could cost the lease.
func RenewAt(fraction float64) Renewal { return Renewal{fraction: min(max(fraction, 0.01), 0.75)} }

// RenewContinuously renews all the time, so that nearly the whole TTL remains at any moment. It
// survives the longest outage of the servers, at the price of a request every twentieth of the
// TTL.
func RenewContinuously() Renewal { return RenewAt(0.05) }

// RenewOnActivity renews only while Hold.Touch is called: work that hangs loses its lease
// although its process lives.
func RenewOnActivity() Renewal { return Renewal{mode: renewOnActivity, fraction: 1.0 / 3} }

// RenewByHand renews only when Hold.Renew is called.
func RenewByHand() Renewal { return Renewal{mode: renewByHand, fraction: 1.0 / 3} }

// RenewNever lets the lease end with its TTL: a reservation. It also outlives the client: Close
// does not release it.
func RenewNever() Renewal { return Renewal{mode: renewNever, fraction: 1.0 / 3} }

// needsOwnSession reports whether a hold cannot share its session with others.
func (r Renewal) needsOwnSession() bool { return r.mode != renewInTime }

// Touch reports activity, for RenewOnActivity.
func (h *Hold) Touch() {
	s := h.session
	s.mu.Lock()
	first := !s.touched
	s.touched = true
	due := s.renewAt
	s.mu.Unlock()
	if first {
		s.client.scheduler.set(&s.timer, due)
	}
}

// Renew renews the lease now, for RenewByHand. The error is an ErrLost if the hold is lost.
func (h *Hold) Renew(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	renew := h.session.renewUntil
	if h.session.local {
		renew = h.recheckOnce // the others have nothing to do with it
	}
	err := renew(ctx)
	if lost := h.Err(); lost != nil {
		return lost
	}
	return err
}

// attemptLimit returns how long one request about the session may take: a server that does not
// answer must leave time to ask another. A fifth of the TTL leaves room for three full attempts
// between a renewal at a third of it and its end.
func (s *Session) attemptLimit() time.Duration {
	return min(max(usableTTL(s.ttl)/5, 20*time.Millisecond), 10*time.Second)
}

// nextRenewal returns when to renew what was last renewed at a moment. Renewals of one client that are due within a
// tenth of the interval are due at the same moment, so that they share a write, for servers too; these moments are
// different for each client, since many may be started together, for example by one deployment.
func (s *Session) nextRenewal(last time.Duration) time.Duration {
	d := time.Duration(float64(usableTTL(s.ttl)) * s.renewal.fraction)
	step := max(d/10, 1)
	at := last + d + rand.N(step)
	return at - (at+s.client.phase)%step
}

// fire does what is due: it ends the session, closes it if it is unused, or renews it. It runs on
// the scheduler's only goroutine, so requests are sent from goroutines of their own: a slow server
// must not delay the end of other sessions.
func (s *Session) fire(now time.Duration) time.Duration {
	if !s.alive() {
		return never
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline := time.Duration(s.deadline.Load())
	// Only one renewal runs at a time; renew sets the timer again when it returns.
	if s.renewing {
		return deadline
	}
	unused := s.unused(now)
	if now < s.renewAt && !(unused && s.local && s.private) {
		return min(deadline, s.renewAt)
	}
	if unused {
		s.renewing = true
		s.client.spawn(func() { _ = s.close(s.client.context) }) // renewing keeps it from being renewed meanwhile
		return deadline
	}
	if !s.wanted() {
		return deadline
	}
	s.renewing = true
	s.client.spawn(func() { s.renew(s.client.context) })
	return deadline
}

// wanted reports whether the session should be renewed now. While an acquire waits in it, it always
// should: a waiter loses its place in the queue when its session expires. A waiter without a session
// in the store keeps its place by itself.
func (s *Session) wanted() bool {
	switch {
	case s.renewal.mode == renewInTime || s.acquiring > 0 && !s.local:
		return true
	case s.renewal.mode == renewOnActivity && s.touched:
		s.touched = false
		return true
	}
	// What is still to be released is tried again after a renewal, even one of nothing.
	return s.local && len(s.holds) == 0
}

// unused reports whether nothing has used the session for one TTL. A shared session is kept for
// that long because the next acquire of the same TTL then saves a request. A private local one is
// unused with its hold: it does not expire.
func (s *Session) unused(now time.Duration) bool {
	// The end of a session releases what is pending, but a task that is done must not be given back. That of a local
	// one does not.
	p := &s.pending
	pending := len(p.called) > 0 || s.local && (p.releasing || len(p.due)+len(p.deferred) > 0)
	if s.own || s.acquiring > 0 || len(s.holds) > 0 || pending {
		s.idle = now
		return false
	}
	return s.local && s.private || now-s.idle >= s.ttl
}

// renew sends renewals until one is answered or the session is over.
func (s *Session) renew(ctx context.Context) {
	// fire does nothing while renewing is set, so what became due meanwhile has to be looked at
	// now.
	defer func() {
		s.mu.Lock()
		s.renewing = false
		s.mu.Unlock()
		s.client.scheduler.set(&s.timer, s.clock())
	}()
	retry := v1.Backoff{Most: min(usableTTL(s.ttl)/20, time.Second)}
	for n := 1; s.alive(); n++ {
		err := s.renewOnce(ctx)
		// A server has just answered: a good moment for releases that failed earlier.
		if err == nil {
			s.retryDeferred()
			return
		}
		// A local session is never gone: what a store does not find then is its own place.
		if ctx.Err() != nil || isGone(err) && !s.local {
			return
		}
		s.warnOfRenewal(err)
		if !retry.Sleep(ctx, n) || s.local && len(s.granted()) == 0 {
			return
		}
	}
}

// warnOfRenewal logs a renewal that failed.
func (s *Session) warnOfRenewal(err error) {
	if s.local {
		s.client.log.Warn("leases could not be renewed", "leases", len(s.granted()), "err", err)
		return
	}
	left := time.Duration(s.deadline.Load()) - s.clock()
	s.client.log.Warn("the session could not be renewed", "session", s.id, "left", left, "err", err)
}

// renewUntil renews the session for a caller that waits for it.
func (s *Session) renewUntil(ctx context.Context) error {
	for n := 1; ; n++ {
		err := s.renewOnce(ctx)
		if !store.Transient(err) || !s.alive() || ctx.Err() != nil || !backoff.Sleep(ctx, n) {
			return err
		}
	}
}

// renewOnce makes one attempt at a renewal and applies its answer.
func (s *Session) renewOnce(ctx context.Context) error {
	if s.local {
		return s.renewLocal(ctx)
	}
	// The known count of interventions: the store names only later ones.
	s.mu.Lock()
	count := s.interventions
	s.mu.Unlock()
	var (
		sent   time.Duration
		answer store.SessionAnswer
	)
	err := once(ctx, s.attemptLimit(), func(ctx context.Context) (err error) {
		// Read for each attempt, just before it is sent: the time that an earlier attempt took must
		// not be counted as granted.
		sent = s.clock()
		answer, err = s.client.sessionful.RenewSession(ctx, s.id, count)
		return err
	})
	switch {
	case isGone(err) && s.alive():
		// The server's deadline is after ours, so the session did not expire: somebody closed
		// it, or the server lost its state.
		s.endAs(&LostError{How: leasehold.SessionClosed, Reason: err.Error()})
	case err == nil && !s.extend(sent, answer):
		return s.lostError(leasehold.SessionExpired)
	}
	return err
}

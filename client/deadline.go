package client

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A hold must end on the client no later than on the server, whatever the network does in between.
// Everything in this file serves that one inequality; where the two sides could disagree, the
// client gives up first, because stopping early costs a retry and stopping late costs two holders.

// margin is the part of what the server grants that a holder gives up: one in a hundred, so that
// each clock may be wrong by 0.5 %.
const margin = 100

// deadlineAfter returns when a hold ends whose server answered that remaining is left, to a
// request that was sent at a moment. It counts from before the request was sent, because the
// server began to count later: the client's deadline is never after the server's.
func deadlineAfter(sent, remaining time.Duration) time.Duration {
	return sent + remaining - remaining/margin
}

// extend moves the deadline by an answer to a request that was sent at a moment. It reports
// whether the session goes on. An answer that comes after the deadline is too late, whatever it
// says: somebody may have seen already that a hold was lost.
func (s *Session) extend(sent time.Duration, answer store.SessionAnswer) bool {
	s.mu.Lock()
	now, until := s.clock(), deadlineAfter(sent, answer.Remaining)
	old := time.Duration(s.deadline.Load())
	switch {
	case s.ended != nil:
		s.mu.Unlock()
		return false
	// The second case is an answer that took longer to arrive than what it grants: its time was up
	// before it could be read.
	case old != 0 && now >= old, now >= until:
		s.mu.Unlock()
		s.end(leasehold.SessionExpired, "")
		return false
	}
	unconfirmed := s.applyInterventionsLocked(answer)
	// Answers can overtake each other. An older one must not take back what a newer one has granted.
	if until > old {
		s.deadline.Store(int64(until))
	}
	if at := s.nextRenewal(sent); at > s.renewAt {
		s.renewAt = at
	}
	s.mu.Unlock()
	s.recheckUnconfirmed(unconfirmed)
	return true
}

// alive reports whether the session is valid, by the clock. If it is not, alive ends it, so that no
// late answer can revive it. It does not wait for the timer, which has not run yet when a paused
// process wakes up.
func (s *Session) alive() bool {
	if s.clock() < time.Duration(s.deadline.Load()) {
		return true
	}
	s.mu.Lock()
	// A renewal may have been answered since the first look at the clock.
	over := s.ended != nil || s.clock() >= time.Duration(s.deadline.Load())
	s.mu.Unlock()
	if over {
		s.end(leasehold.SessionExpired, "")
	}
	return !over
}

// deadline returns when the hold ends, on the client's clock.
func (h *Hold) deadline() time.Duration {
	return min(time.Duration(h.session.deadline.Load()), h.ownDeadline())
}

// ownDeadline returns when the hold ends even if its session goes on; never if it has no limit
// and is not frozen.
func (h *Hold) ownDeadline() time.Duration {
	at := never
	for _, own := range []int64{h.limitedAt.Load(), h.frozenAt.Load()} {
		if own != 0 {
			at = min(at, time.Duration(own))
		}
	}
	return at
}

// check returns how the hold was lost, by the clock; nil if it is valid.
func (h *Hold) check() *LostError {
	if lost := h.lost.Load(); lost != nil {
		return lost
	}
	// The common case takes no lock: programs call Valid and Token before every write.
	if h.session.clock() < h.deadline() {
		return nil
	}
	if h.session.alive() {
		// It may have moved since the first look, but never after it passed; see setLimit.
		if h.session.clock() < h.ownDeadline() {
			return h.lost.Load()
		}
		h.lose(h.howLimited())
		return h.lost.Load()
	}
	// The session has ended, but its end has not come to this hold yet.
	h.lose(h.session.howEnded())
	return h.lost.Load()
}

// howLimited returns how a hold ended whose session goes on.
func (h *Hold) howLimited() *LostError {
	if limited := time.Duration(h.limitedAt.Load()); limited != 0 && h.session.clock() >= limited {
		return &LostError{How: leasehold.ByHoldLimit}
	}
	if h.session.local {
		return &LostError{How: leasehold.ByTTL}
	}
	return &LostError{How: leasehold.ByTTL,
		Reason: "others intervened in its session, and no server has confirmed it since"}
}

package client

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// margin is what a holder gives up of what the server grants, so that clocks may
// differ by 0.5 % on either side.
const margin = 100

// deadlineAfter is when to stop believing in what a server answered to a message
// that was sent at a moment. It counts from before the message was sent: the server's
// count began later.
func deadlineAfter(sent, remaining time.Duration) time.Duration {
	return sent + remaining - remaining/margin
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// believe takes what a server answered, and tells whether the session goes on. An
// answer that came after the deadline is too late, whatever it says: somebody may have
// seen already that the hold was lost.
func (s *Session) believe(sent time.Duration, answer v1.Session) bool {
	s.mu.Lock()
	now, until := s.clock(), deadlineAfter(sent, milliseconds(answer.RemainingMS))
	old := time.Duration(s.deadline.Load())
	switch {
	case s.ended != nil:
		s.mu.Unlock()
		return false
	case old != 0 && now >= old, now >= until:
		s.mu.Unlock()
		s.end(leasehold.SessionExpired, "")
		return false
	}
	doubtful := s.countLocked(answer)
	if until > old {
		s.deadline.Store(int64(until))
	}
	if at := sent + s.pace(); at > s.renewAt {
		s.renewAt = at
	}
	s.mu.Unlock()
	s.left(doubtful)
	return true
}

// alive tells whether the session may be believed in, by the clock. It ends it if
// not, so that nothing can bring it back.
func (s *Session) alive() bool {
	if s.clock() < time.Duration(s.deadline.Load()) {
		return true
	}
	s.mu.Lock()
	// An answer may have come between the two lines above.
	over := s.ended != nil || s.clock() >= time.Duration(s.deadline.Load())
	s.mu.Unlock()
	if over {
		s.end(leasehold.SessionExpired, "")
	}
	return !over
}

// deadline is when the hold ends, on the client's clock.
func (h *Hold) deadline() time.Duration {
	return min(time.Duration(h.session.deadline.Load()), h.ownDeadline())
}

// ownDeadline is when the hold ends although its session goes on.
func (h *Hold) ownDeadline() time.Duration {
	at := never
	for _, own := range []int64{h.limited.Load(), h.fixed.Load()} {
		if own != 0 {
			at = min(at, time.Duration(own))
		}
	}
	return at
}

// check returns how the hold was lost, nil if it was not, by the clock.
func (h *Hold) check() *LostError {
	if lost := h.lost.Load(); lost != nil {
		return lost
	}
	if h.session.clock() < h.deadline() {
		return nil
	}
	if h.session.alive() {
		// An own deadline only moves while it has not passed; see limit.
		if h.session.clock() < h.ownDeadline() {
			return h.lost.Load()
		}
		h.lose(h.howLimited())
		return h.lost.Load()
	}
	// Whoever ended the session may not have come to this hold yet.
	h.lose(h.session.howEnded())
	return h.lost.Load()
}

// howLimited is how a hold ends whose session goes on.
func (h *Hold) howLimited() *LostError {
	if limited := time.Duration(h.limited.Load()); limited != 0 && h.session.clock() >= limited {
		return &LostError{How: leasehold.ByHoldLimit}
	}
	return &LostError{How: leasehold.ByTTL, Reason: "others intervened in its session, and no server confirmed it since"}
}

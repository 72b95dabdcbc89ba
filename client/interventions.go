package client

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A renewal keeps the session alive, but says nothing about a single lease: others may have
// broken it, or given it to another holder. Such an act is an intervention. Each answer about
// a session counts them, and names the leases of the last ones. A hold knows the count at
// which its lease was last confirmed. A renewal extends the hold if the count is the same, or
// if every intervention since then is named and the hold is not among them. Every other hold
// is frozen: it keeps the deadline it had until the server was asked about its lease. So
// renewals alone keep a client honest; the watch only makes it faster.
//
// A deadline from an answer with a smaller count than the hold's is good for the hold too:
// the lease was confirmed after that answer, and a break after that left it what remained.

// maxUncounted is the largest number of holds in a session that are rechecked regularly where
// the server does not count interventions.
const maxUncounted = 256

// applyInterventionsLocked takes the count of an answer about the session, before the answer
// moves the deadline. It freezes the holds that the answer does not confirm, and returns them.
func (s *Session) applyInterventionsLocked(answer store.SessionAnswer) (unconfirmed []*Hold) {
	if !answer.Counted {
		return nil
	}
	first := !s.countsInterventions // the server has just begun to count: earlier interventions are unknown
	s.countsInterventions = true
	if answer.Interventions <= s.interventions && !first {
		return nil
	}
	// Names are those of the last interventions, oldest first, so the newest has the number of the
	// count itself.
	s.interventions = max(s.interventions, answer.Interventions)
	names := answer.Intervened
	hit := map[*Hold]uint64{} // the number of the last intervention
	for i, id := range names {
		if h := s.holds[id]; h != nil {
			hit[h] = s.interventions - uint64(len(names)-1-i)
		}
	}
	now, deadline := s.clock(), s.deadline.Load()
	for _, h := range s.holds {
		// A hold is left alone if it has not been granted, if this server never counted for it, or
		// if it was confirmed at this count or later. It follows the session if every intervention
		// since it was confirmed is named and none of them hit it. Otherwise nobody knows, and it
		// is frozen.
		switch {
		case h.token.Load() == 0 || !h.counted && !first || h.counted && h.interventions >= s.interventions:
		case h.counted && s.interventions-h.interventions <= uint64(len(names)) && hit[h] <= h.interventions:
			h.interventions = s.interventions
			h.followSessionLocked(now)
		default:
			// An earlier, and so shorter, frozen deadline stays.
			h.frozenAt.CompareAndSwap(0, deadline)
			unconfirmed = append(unconfirmed, h)
		}
	}
	return unconfirmed
}

// followSessionLocked unfreezes the hold, so that it lasts as long as its session again. A hold
// whose frozen deadline has passed is lost, and stays so. The session's lock is held.
func (h *Hold) followSessionLocked(now time.Duration) {
	if frozen := time.Duration(h.frozenAt.Load()); frozen != 0 && now < frozen {
		h.frozenAt.Store(0)
	}
}

// recheckUnconfirmed starts the timers of frozen holds, and queues them to be rechecked.
func (s *Session) recheckUnconfirmed(holds []*Hold) {
	for _, h := range holds {
		h.mu.Lock()
		m := h.extraLocked()
		h.mu.Unlock()
		s.client.scheduler.set(&m.timer, s.clock()) // fire returns when it is due
	}
	if len(holds) > 0 {
		s.queueRecheck(holds...)
	}
}

// granted takes the token of a grant, and its count of interventions. It reports whether the
// lease has to be rechecked before anybody relies on it, because others intervened since.
func (h *Hold) granted(lease store.Grant) (behind bool) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease.Counted {
		h.counted, h.interventions = true, lease.Interventions
	}
	h.token.Store(uint64(lease.Token))
	return h.counted && h.interventions < s.interventions || lease.State == leasehold.Breaking
}

// recheckRegularly is for servers that do not count interventions: the lease is rechecked at
// intervals, and the hold lasts as long as the last answer allows. In a session with many holds
// that would be too many requests: there the hold lasts as long as the session, and the watch
// tells of interventions.
func (h *Hold) recheckRegularly() {
	if h.session.renewal.mode == renewNever {
		return // nothing extends it
	}
	h.session.mu.Lock()
	many := len(h.session.holds) > maxUncounted
	h.session.mu.Unlock()
	if many {
		return
	}
	h.frozenAt.Store(h.session.deadline.Load())
	h.mu.Lock()
	m := h.extraLocked()
	m.uncounted = true
	m.recheckAt = h.session.clock() + h.session.recheckInterval()
	h.mu.Unlock()
	h.session.client.scheduler.set(&m.timer, h.session.clock())
}

// recheckInterval returns how long to wait between two rechecks of a lease: as between renewals,
// or less where those are far apart.
func (s *Session) recheckInterval() time.Duration {
	return time.Duration(float64(s.ttl) * min(s.renewal.fraction, 1.0/3))
}

// unfreeze takes an answer about the lease itself, to a request that was sent at a moment. It
// reports whether the answer confirms the hold; if not, others intervened since, and the lease
// is rechecked.
func (h *Hold) unfreeze(sent time.Duration, lease store.Grant) bool {
	s := h.session
	h.mu.Lock()
	m := h.extraLocked()
	uncounted := m.uncounted && !lease.Counted
	m.uncounted = uncounted
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if uncounted || s.local {
		h.extendLocked(deadlineAfter(sent, lease.Remaining))
		return true
	}
	if lease.Counted {
		h.counted, h.interventions = true, max(h.interventions, lease.Interventions)
	}
	if h.counted && h.interventions < s.interventions {
		return false
	}
	h.followSessionLocked(s.clock())
	return true
}

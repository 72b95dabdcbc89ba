package client

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A renewal keeps the session alive, and says nothing of single leases: others may have
// broken one of them, or given it to another holder. So each answer about a session counts
// what others did to its claims, and names the last of those. A hold knows the count with
// which it was confirmed. A renewal extends it if the count is the same, or if all that
// happened since is named and the hold is not among it. Every other hold keeps the deadline
// that it had, and the server is asked for the lease itself, beside the renewals. So a
// renewal is enough; the watch only makes it faster.
//
// A deadline from an answer with a smaller count than the hold's is good for the hold too:
// the lease was confirmed after that answer, and a break after that left it what remained.

// maxUncounted is how many holds a session may have for each to be asked about again and
// again where the server does not count.
const maxUncounted = 256

// countLocked takes the count of an answer about the session, before the answer moves the
// deadline. It returns the holds that are in doubt.
func (s *Session) countLocked(answer v1.Session) (doubtful []*Hold) {
	if answer.Interventions == nil {
		return nil
	}
	first := !s.counts // the server has begun to count: what it did not tell of before is open
	s.counts = true
	if *answer.Interventions <= s.count && !first {
		return nil
	}
	s.count = max(s.count, *answer.Interventions)
	names := answer.Intervened
	hit := map[*Hold]uint64{} // the number of the last intervention
	for i, id := range names {
		if h := s.holds[id]; h != nil {
			hit[h] = s.count - uint64(len(names)-1-i)
		}
	}
	now, deadline := s.clock(), s.deadline.Load()
	for _, h := range s.holds {
		switch {
		case h.token.Load() == 0 || !h.counted && !first || h.counted && h.count >= s.count:
		case h.counted && s.count-h.count <= uint64(len(names)) && hit[h] <= h.count:
			h.count = s.count
			h.followLocked(now)
		default:
			h.fixed.CompareAndSwap(0, deadline)
			doubtful = append(doubtful, h)
		}
	}
	return doubtful
}

// followLocked lets the hold last as long as its session again, unless the deadline that it
// was left with has passed: nothing brings it back then. The session's lock is held.
func (h *Hold) followLocked(now time.Duration) {
	if fixed := time.Duration(h.fixed.Load()); fixed != 0 && now < fixed {
		h.fixed.Store(0)
	}
}

// left gives holds alarms for the deadlines that they were left with, and has the server
// asked about them.
func (s *Session) left(holds []*Hold) {
	for _, h := range holds {
		h.mu.Lock()
		m := h.moreLocked()
		h.mu.Unlock()
		s.client.keeper.set(&m.alarm, s.clock()) // it says itself when to ring
	}
	if len(holds) > 0 {
		s.doubt(holds...)
	}
}

// granted takes the token of a grant, and the count with it. It reports whether the server has
// to be asked for the lease before it is believed in: others did something since.
func (h *Hold) granted(lease v1.Lease) (behind bool) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease.Interventions != nil {
		h.counted, h.count = true, *lease.Interventions
	}
	h.token.Store(lease.Token)
	return h.counted && h.count < s.count || lease.State == leasehold.Breaking.String()
}

// lookOften is for a server that counts nothing: it is asked about each lease, again and
// again, and the hold lasts as long as the last answer allows. In a session with many holds
// that would be too much to ask: the others last as long as the session, and the watch tells.
func (h *Hold) lookOften() {
	if h.session.renewal.way == neverRenew {
		return // nothing extends it
	}
	h.session.mu.Lock()
	many := len(h.session.holds) > maxUncounted
	h.session.mu.Unlock()
	if many {
		return
	}
	h.fixed.Store(h.session.deadline.Load())
	h.mu.Lock()
	m := h.moreLocked()
	m.uncounted = true
	m.lookAt = h.session.clock() + h.session.between()
	h.mu.Unlock()
	h.session.client.keeper.set(&m.alarm, h.session.clock())
}

// between is how long to wait between two questions about a lease: as between renewals, or
// less where those are far apart.
func (s *Session) between() time.Duration {
	return time.Duration(float64(s.ttl) * min(s.renewal.fraction, 1.0/3))
}

// confirm takes an answer about the lease itself to a message that was sent at a moment. It
// reports whether that is enough; if not, others did something since, and the server is asked again.
func (h *Hold) confirm(sent time.Duration, lease v1.Lease) bool {
	s := h.session
	h.mu.Lock()
	m := h.moreLocked()
	uncounted := m.uncounted && lease.Interventions == nil
	m.uncounted = uncounted
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if uncounted {
		if lease.RemainingMS != nil && s.clock() < time.Duration(h.fixed.Load()) {
			h.fixed.Store(int64(deadlineAfter(sent, milliseconds(*lease.RemainingMS))))
		}
		return true
	}
	if lease.Interventions != nil {
		h.counted, h.count = true, max(h.count, *lease.Interventions)
	}
	if h.counted && h.count < s.count {
		return false
	}
	h.followLocked(s.clock())
	return true
}

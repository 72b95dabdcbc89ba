package client

import "time"

// A hold usually lasts as long as its session. It has a limit of its own where the lease has a hold
// limit, or while an operator's break runs out: then renewals of the session go on, and the lease
// ends all the same.

// setLimit gives the hold a deadline of its own, before that of its session, by an answer to a
// request that was sent at a moment. It reports false if the hold is already lost, which cannot be
// undone.
func (h *Hold) setLimit(sent, at time.Duration) bool {
	if h.check() != nil {
		return false
	}
	h.mu.Lock()
	m := h.extraLocked()
	// A request that was sent before the last limit was known may have been decided before a break
	// that this limit comes from: its answer must not undo it.
	if old := time.Duration(h.limitedAt.Load()); old != 0 && sent <= m.limitKnown {
		at = min(at, old)
	}
	m.limitKnown = h.session.clock()
	h.limitedAt.Store(int64(at))
	h.mu.Unlock()
	h.session.client.scheduler.set(&m.timer, h.session.clock()) // fire returns when it is due
	return true
}

// recheckLimit sets whether the hold has a limit of its own, which is rechecked at intervals
// because renewals of the session do not tell of it.
func (h *Hold) recheckLimit(has bool) {
	h.mu.Lock()
	h.extraLocked().hasLimit = has
	h.mu.Unlock()
}

// fire ends the hold at its own deadline, and rechecks in time whether that has moved.
func (h *Hold) fire(now time.Duration) time.Duration {
	if h.check() != nil {
		return never
	}
	h.mu.Lock()
	m := h.extra
	again := m.hasLimit || m.uncounted || m.failedRechecks > 0
	due := again && now >= m.recheckAt
	if due {
		m.recheckAt = now + h.session.recheckInterval()
	}
	next := m.recheckAt
	h.mu.Unlock()
	if due {
		h.session.queueRecheck(h)
	}
	if !again {
		return h.ownDeadline()
	}
	return min(h.ownDeadline(), next)
}

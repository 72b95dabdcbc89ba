package client

import "time"

// limit gives the hold a deadline of its own, before that of its session. It is false
// if the one that it had has passed: that can not be taken back.
func (h *Hold) limit(at time.Duration) bool {
	if h.check() != nil {
		return false
	}
	h.mu.Lock()
	m := h.moreLocked()
	h.mu.Unlock()
	h.limited.Store(int64(at))
	h.session.client.keeper.set(&m.alarm, h.session.clock()) // it says itself when to ring
	return true
}

// own makes the hold ask for its own end again and again, since the session's renewals
// do not tell it.
func (h *Hold) own(limits bool) {
	h.mu.Lock()
	h.moreLocked().limits = limits
	h.mu.Unlock()
}

// ring ends the hold at its own deadline, and looks in time whether that has moved.
func (h *Hold) ring(now time.Duration) time.Duration {
	if h.check() != nil {
		return never
	}
	h.mu.Lock()
	m := h.more
	again := m.limits || m.uncounted || m.refused > 0
	due := again && now >= m.lookAt
	if due {
		m.lookAt = now + h.session.between()
	}
	next := m.lookAt
	h.mu.Unlock()
	if due {
		h.session.doubt(h)
	}
	if !again {
		return h.ownDeadline()
	}
	return min(h.ownDeadline(), next)
}

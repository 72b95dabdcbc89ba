package client

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// maxAsked is how many questions about leases of a session are under way at once: ten
// thousand take 8 s where each takes 50 ms.
const maxAsked = 64

// doubts are the holds of a session that the server has to be asked about. The session's
// lock guards it.
type doubts struct {
	queue   []*Hold
	queued  map[*Hold]bool
	workers int
}

// lookAtAll has the server asked about every hold: what was missed may be the end of any.
func (c *Client) lookAtAll() {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range open {
		s.mu.Lock()
		var holds []*Hold
		for _, h := range s.holds {
			if h.token.Load() != 0 {
				holds = append(holds, h)
			}
		}
		s.mu.Unlock()
		s.doubt(holds...)
	}
}

// doubt has the server asked about holds.
func (s *Session) doubt(holds ...*Hold) {
	s.mu.Lock()
	d := &s.doubts
	for _, h := range holds {
		if s.ended == nil && !d.queued[h] {
			if d.queued == nil {
				d.queued = map[*Hold]bool{}
			}
			d.queued[h] = true
			d.queue = append(d.queue, h)
		}
	}
	more := min(maxAsked-d.workers, len(d.queue))
	d.workers += more
	s.mu.Unlock()
	for range more {
		s.client.background(s.settle)
	}
}

// settle asks about one hold after another.
func (s *Session) settle(ctx context.Context) {
	for h := s.nextDoubt(); h != nil; h = s.nextDoubt() {
		_ = h.look(ctx)
	}
}

func (s *Session) nextDoubt() *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.doubts
	if len(d.queue) == 0 {
		d.workers--
		return nil
	}
	h := d.queue[0]
	d.queue = d.queue[1:]
	delete(d.queued, h)
	return h
}

// look asks the server how the lease itself stands: whether it is still there, still
// ours, and when it ends by itself. It is needed where the session's renewal does not
// tell: after a break was announced, with a limit on the hold, and when events may have
// been missed. Only one look is under way at a time, so that answers are taken in the
// order in which they were given.
func (h *Hold) look(ctx context.Context) error {
	h.mu.Lock()
	m := h.moreLocked()
	if m.looking {
		m.again = true
		h.mu.Unlock()
		return nil
	}
	m.looking = true
	h.mu.Unlock()
	for {
		err := h.lookOnce(ctx)
		h.mu.Lock()
		again := m.again && err == nil
		later := err != nil && (m.again || h.fixed.Load() != 0)
		m.again, m.looking = false, again
		h.mu.Unlock()
		if !again {
			h.lookLater(later)
			return err
		}
	}
}

// lookLater has the server asked again in a moment, or not any more. It may be busy, and
// while nothing confirms the hold its deadline stays where it is.
func (h *Hold) lookLater(later bool) {
	later = later && h.check() == nil
	h.mu.Lock()
	m := h.moreLocked()
	if !later {
		m.refused = 0
		h.mu.Unlock()
		return
	}
	m.refused++
	m.lookAt = h.session.clock() + backoff.Pause(m.refused)
	at := m.lookAt
	h.mu.Unlock()
	h.session.client.keeper.set(&m.alarm, at)
}

func (h *Hold) lookOnce(ctx context.Context) error {
	s := h.session
	var (
		sent  time.Duration
		lease v1.Lease
		id    string
	)
	err := s.client.servers.Retry(ctx, s.attempt(), func(ctx context.Context, w *v1.Caller) (err error) {
		if err := h.Err(); err != nil {
			return err
		}
		sent, id = s.clock(), h.ID()
		lease, err = w.Renew(ctx, v1.RenewRequest{ID: id})
		return err
	})
	switch {
	case h.Err() != nil:
		return h.Err()
	case isGone(err):
		return h.gone(ctx, id)
	case err != nil:
		return err
	}
	return h.seen(sent, lease)
}

// gone is what to think when a server does not know an id of the lease any more. It may
// go on under another one.
func (h *Hold) gone(ctx context.Context, id string) error {
	h.mu.Lock()
	renamed := h.id != id || h.moreLocked().changing
	h.mu.Unlock()
	if renamed {
		return h.Err()
	}
	why := h.howGone(ctx)
	if why != nil {
		h.lose(why)
	}
	h.mu.Lock()
	h.more.again = h.more.again || why == nil && h.id != id // to be asked about under its new one
	h.mu.Unlock()
	return h.Err()
}

// seen takes what a server showed of the lease in answer to a look.
func (h *Hold) seen(sent time.Duration, lease v1.Lease) error {
	if !h.learn(sent, lease) && h.Err() == nil {
		h.mu.Lock()
		h.more.again = true
		h.mu.Unlock()
	}
	return h.Err()
}

// learn takes what an answer says of the lease itself. It reports whether that is enough:
// else the hold is lost, or the server has to be asked once more.
func (h *Hold) learn(sent time.Duration, lease v1.Lease) bool {
	h.mu.Lock()
	m := h.moreLocked()
	mine := lease.Token == h.token.Load() || m.changing
	// A break is often further away than the end of the session, so it has to be looked
	// at again as that moves.
	m.limits = m.limits || lease.State == leasehold.Breaking.String()
	m.lookAt = sent + h.session.between()
	ends := m.limits
	h.mu.Unlock()
	switch {
	case !mine:
		h.lose(&LostError{How: leasehold.IDChanged, By: lease.Holder})
	case ends && lease.RemainingMS != nil:
		if !h.limit(deadlineAfter(sent, milliseconds(*lease.RemainingMS))) {
			return false
		}
	}
	return h.Err() == nil && h.confirm(sent, lease)
}

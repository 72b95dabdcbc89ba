package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A recheck asks a server about one lease, where the renewal of the session is not enough to go by.
// When it is needed is explained in interventions.go.

// maxRechecks is how many rechecks of a session run at once: ten thousand then take 8 s if each
// takes 50 ms.
const maxRechecks = 64

// A recheckQueue has the holds of a session whose leases have to be rechecked. A hold is in it at
// most once: a burst of events about one lease needs one answer. The session's lock guards it.
type recheckQueue struct {
	queue   []*Hold
	queued  map[*Hold]bool
	workers int
}

// recheckAll rechecks every hold: any of them may have ended while events were missed.
func (c *Client) recheckAll() {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range open {
		s.mu.Lock()
		var holds []*Hold
		for _, h := range s.holds {
			// A hold without a token has not been granted yet; its acquire will learn of its end by
			// itself.
			if h.token.Load() != 0 {
				holds = append(holds, h)
			}
		}
		s.mu.Unlock()
		s.queueRecheck(holds...)
	}
}

// queueRecheck queues holds to be rechecked, and starts workers for them.
func (s *Session) queueRecheck(holds ...*Hold) {
	s.mu.Lock()
	q := &s.rechecks
	for _, h := range holds {
		if s.ended == nil && !q.queued[h] {
			if q.queued == nil {
				q.queued = map[*Hold]bool{}
			}
			q.queued[h] = true
			q.queue = append(q.queue, h)
		}
	}
	more := min(maxRechecks-q.workers, len(q.queue))
	q.workers += more
	s.mu.Unlock()
	for range more {
		s.client.background(s.recheckQueued)
	}
}

// recheckQueued is a worker: it rechecks holds until the queue is empty.
func (s *Session) recheckQueued(ctx context.Context) {
	for h := s.nextRecheck(); h != nil; h = s.nextRecheck() {
		// A failed recheck schedules its own repetition, and its hold stays frozen until then.
		_ = h.recheck(ctx)
	}
}

// nextRecheck takes a hold from the queue. It returns nil, and counts the worker out, if there
// is none.
func (s *Session) nextRecheck() *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.rechecks
	if len(q.queue) == 0 {
		q.workers--
		return nil
	}
	h := q.queue[0]
	q.queue = q.queue[1:]
	delete(q.queued, h)
	return h
}

// recheck asks the server about the lease itself: whether it is still there, still ours, and
// when it ends. It is needed where the session's renewal does not tell: after interventions,
// after a break was announced, with a limit on the hold, and when events may have been missed.
// Only one recheck of a hold runs at a time, so that answers are applied in the order in which
// they were given.
func (h *Hold) recheck(ctx context.Context) error {
	h.mu.Lock()
	m := h.extraLocked()
	if m.rechecking {
		// The answer under way may have been given before the event that this call is about.
		m.recheckAgain = true
		h.mu.Unlock()
		return nil
	}
	m.rechecking = true
	h.mu.Unlock()
	for {
		err := h.recheckOnce(ctx)
		h.mu.Lock()
		again := m.recheckAgain && err == nil
		// A frozen hold has nothing else that would save it before its deadline, so it tries again.
		later := err != nil && (m.recheckAgain || h.frozenAt.Load() != 0)
		m.recheckAgain, m.rechecking = false, again
		h.mu.Unlock()
		if !again {
			h.recheckLater(later)
			return err
		}
	}
}

// recheckLater schedules another recheck after one that failed, or clears the count of failures.
// The server may be busy; until it confirms the hold, the deadline stays frozen.
func (h *Hold) recheckLater(later bool) {
	later = later && h.check() == nil
	h.mu.Lock()
	m := h.extraLocked()
	if !later {
		m.failedRechecks = 0
		h.mu.Unlock()
		return
	}
	m.failedRechecks++
	m.recheckAt = h.session.clock() + backoff.Pause(m.failedRechecks)
	at := m.recheckAt
	h.mu.Unlock()
	h.session.client.scheduler.set(&m.timer, at)
}

// recheckOnce renews the lease by its id. A renewal, unlike a read, is decided by the leader at a
// known time, so that its answer can be used to compute a deadline.
func (h *Hold) recheckOnce(ctx context.Context) error {
	s := h.session
	var (
		sent   time.Duration
		answer store.Renewal
		id     string
	)
	err := s.client.retry(ctx, s.attemptLimit(), func(ctx context.Context) (err error) {
		if err := h.Err(); err != nil {
			return err
		}
		// The id may be changed while this is being retried.
		sent, id = s.clock(), h.ID()
		answer, err = renewLease(ctx, s.client.store, store.Ref{Resource: h.Resource(), ID: id})
		return err
	})
	switch {
	case h.Err() != nil:
		return h.Err()
	case err != nil:
		return err
	case answer.Ended != nil && answer.Ended.How == 0:
		return h.handleGone(ctx, id)
	case answer.Ended != nil:
		h.lose(lostAs(answer.Ended))
		return h.Err()
	}
	return h.takeRecheck(sent, answer.Grant)
}

// renewLease renews one lease.
func renewLease(ctx context.Context, s store.Store, ref store.Ref) (store.Renewal, error) {
	answers, err := renewLeases(ctx, s, ref)
	if err != nil {
		return store.Renewal{}, err
	}
	return answers[0], answers[0].Err
}

// renewLeases renews leases. A store that answers for fewer or more has said nothing about any of them.
func renewLeases(ctx context.Context, s store.Store, refs ...store.Ref) ([]store.Renewal, error) {
	answers, err := s.Renew(ctx, refs...)
	if err == nil && len(answers) != len(refs) {
		err = &leasehold.Error{Code: leasehold.Undecided,
			Message: fmt.Sprintf("the store answered for %d leases: asked for %d", len(answers), len(refs))}
	}
	return answers, err
}

// handleGone handles that a server does not know an id of the lease. The lease may go on under
// another id.
func (h *Hold) handleGone(ctx context.Context, id string) error {
	h.mu.Lock()
	renamed := h.id != id || h.extraLocked().changing
	h.mu.Unlock()
	if renamed {
		return h.Err()
	}
	// The history tells a lease that has ended from one that only has another id.
	why := h.whyGone(ctx)
	if why != nil {
		h.lose(why)
	}
	h.mu.Lock()
	h.extra.recheckAgain = h.extra.recheckAgain || why == nil && h.id != id // recheck it under its new id
	h.mu.Unlock()
	return h.Err()
}

// takeRecheck applies the answer to a recheck, and asks for another one if that was not enough.
func (h *Hold) takeRecheck(sent time.Duration, lease store.Grant) error {
	if !h.applyLease(sent, lease) && h.Err() == nil {
		h.mu.Lock()
		h.extra.recheckAgain = true
		h.mu.Unlock()
	}
	return h.Err()
}

// applyLease applies what an answer says about the lease itself. It reports whether that
// confirms the hold; if not, the hold is lost or has to be rechecked.
func (h *Hold) applyLease(sent time.Duration, lease store.Grant) bool {
	h.mu.Lock()
	m := h.extraLocked()
	// Another token means another holder, except while this client itself changes the holder: then
	// its own answer brings the new token.
	mine := uint64(lease.Token) == h.token.Load() || m.changing
	// The end of a break is often after the session's deadline, so it has to be rechecked as
	// the session is renewed.
	m.hasLimit = m.hasLimit || lease.State == leasehold.Breaking
	m.recheckAt = sent + h.session.recheckInterval()
	ends := m.hasLimit
	h.mu.Unlock()
	switch {
	case !mine:
		h.lose(&LostError{How: leasehold.IDChanged, By: lease.Holder})
	case lease.State == leasehold.Breaking, ends && lease.Remaining > 0:
		// Nothing may be left of a lease that is being broken; 0 would be no limit.
		if !h.setLimit(sent, max(1, deadlineAfter(sent, lease.Remaining))) {
			return false
		}
	}
	return h.Err() == nil && h.unfreeze(sent, lease)
}

package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

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

// howGone finds out why a server does not know the lease any more; nil if it only has
// another id.
func (h *Hold) howGone(ctx context.Context) *LostError {
	id, token := h.ID(), h.token.Load()
	taken, known := "", false
	for _, e := range slices.Backward(h.session.client.history(ctx, h.resource)) {
		switch {
		case e.ID == id && e.Kind == leasehold.Ended.String():
			return &LostError{How: howOf(e.How), By: e.By, Reason: e.Reason}
		case e.Kind != leasehold.Changed.String() || known:
		case e.Token == token && e.ID == id:
			known = true // what was before is history
		case e.Token == token:
			h.session.renamed(e)
			return nil
		case e.Token > token && e.Session == h.session.id:
			taken = e.Holder // it may be the one: nothing else ended this id
		}
	}
	if taken != "" {
		return &LostError{How: leasehold.IDChanged, By: taken}
	}
	return &LostError{How: leasehold.SessionClosed, Reason: "the server does not know the lease"}
}

// movedTo returns the id under which the lease goes on that had another one; empty if it
// does not.
func (h *Hold) movedTo(ctx context.Context, id string) string {
	for _, e := range slices.Backward(h.session.client.history(ctx, h.resource)) {
		if e.Token != h.token.Load() {
			continue
		}
		if e.Kind == leasehold.Changed.String() && e.ID != id {
			return e.ID
		}
		return "" // the last that is known of it
	}
	return ""
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

// Change hands the lease to another holder, or to another id, or both, without a gap.
// A new holder has a new token; a new id alone keeps it. The Hold goes on under what was
// changed.
func (h *Hold) Change(ctx context.Context, to Change) error {
	if err := h.Err(); err != nil {
		return err
	}
	if to.Holder == "" && to.ID == "" {
		return &leasehold.Error{Code: leasehold.Invalid, Message: "a change needs another holder, another id, or both"}
	}
	h.changing(true)
	defer h.changing(false)
	id := h.ID()
	defer func() {
		if h.ID() != to.ID || h.Err() != nil {
			h.session.remove(to.ID)
		}
	}()
	if to.ID != "" && !h.session.add(h, to.ID) { // so that what happens to it is heard
		return h.Err()
	}
	var lease v1.Lease
	sent := h.session.clock() // the first attempt: the answer may be one to any of them
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := h.session.client.servers.Retry(ctx, h.session.attempt(), func(ctx context.Context, w *v1.Caller) (err error) {
		lease, err = w.Change(ctx, v1.ChangeRequest{ID: id, Holder: to.Holder, NewID: to.ID})
		return err
	})
	switch {
	case err == nil:
		h.changed(sent, lease)
		return h.Err()
	case isGone(err):
		if why := h.howGone(ctx); why != nil {
			h.lose(why)
			return h.Err()
		}
		return err // somebody else gave it another id meanwhile
	case v1.Transient(err):
		// Nobody can tell under which id or token it goes on: it is not to be relied on.
		h.lose(&LostError{How: leasehold.IDChanged, Reason: err.Error()})
		h.session.owe(id)
		if to.ID != "" {
			h.session.owe(to.ID)
		}
	}
	return err
}

// A Change is what a lease is changed to. What is empty stays as it is.
type Change struct {
	Holder string
	ID     string
}

func (h *Hold) changing(is bool) {
	h.mu.Lock()
	h.moreLocked().changing = is
	h.mu.Unlock()
}

// changed takes the new id, holder and token. The answer counts what others did before, so it
// has to be taken whole: a break that was announced is not told of again.
func (h *Hold) changed(sent time.Duration, lease v1.Lease) {
	h.mu.Lock()
	old := h.id
	h.id, h.holder = lease.ID, lease.Holder
	h.mu.Unlock()
	h.token.Store(lease.Token)
	if enough := h.learn(sent, lease); !enough || lease.State == leasehold.Breaking.String() {
		h.session.doubt(h) // an older look may still be on its way
	}
	if old != lease.ID {
		h.session.remove(old)
	}
}

// HandOver gives the resource to a holder that waits for it, before all others and
// without a gap: it is granted in the step in which it is released. If that holder does
// not wait, the error is a leasehold.ErrNotFound and the hold goes on.
func (h *Hold) HandOver(ctx context.Context, holder string) error {
	if err := h.Err(); err != nil {
		return err
	}
	c := h.session.client
	waiter, err := c.waiter(ctx, h.resource, holder)
	if err != nil {
		return err
	}
	err = c.servers.Retry(ctx, h.session.attempt(), func(ctx context.Context, w *v1.Caller) error {
		moved, err := w.Move(ctx, v1.MoveRequest{ID: waiter.ID, Priority: leasehold.MaxPriority, By: h.holder, Reason: "hand-over"})
		waiter.Position = moved.Position
		return err
	})
	switch {
	case isGone(err):
		return &leasehold.Error{Code: leasehold.NotFound, Message: holder + " does not wait for " + h.resource + " any more"}
	case err != nil:
		return err
	case waiter.Position > 1:
		return &leasehold.Error{Code: leasehold.Refused, Message: "others with the largest priority wait for " + h.resource + " before " + holder}
	}
	return h.Release(ctx)
}

// waiter finds who waits under a name.
func (c *Client) waiter(ctx context.Context, resource, holder string) (v1.Waiter, error) {
	var r v1.Resource
	err := c.servers.Retry(ctx, 5*time.Second, func(ctx context.Context, w *v1.Caller) (err error) {
		r, err = w.Resource(ctx, resource, v1.MaxLimit)
		return err
	})
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return v1.Waiter{}, err
	}
	for _, w := range r.Queue {
		if w.Holder == holder {
			return w, nil
		}
	}
	return v1.Waiter{}, &leasehold.Error{Code: leasehold.NotFound, Message: holder + " does not wait for " + resource}
}

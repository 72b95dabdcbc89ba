package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Hold is the live grip on a lease. The client renews it; the Hold knows by itself
// when it may not be believed in any more, which is before anybody else can have the
// resource, and says so: its Context ends, with a cause, and Valid turns false.
//
// Valid, Token, Err and Context().Err() read the clock each time, so that they tell the
// truth right after a pause, when no timer had a chance to run. Contexts derived from
// Context learn of the end a moment later. Between Valid and what is done next a process
// can be paused for any length of time: show Token to what you protect.
type Hold struct {
	session  *Session
	resource string
	holder   string
	party    string
	values   context.Context // of the acquire, never ending
	floor    leasehold.Token
	slots    int
	units    []string
	after    *leasehold.Ending
	token    atomic.Uint64
	limited  atomic.Int64 // a deadline of its own; 0: only the session's
	fixed    atomic.Int64 // the deadline that it was left with when it could not be confirmed; 0: none
	lost     atomic.Pointer[LostError]

	counted bool   // whether the server counts; the session's lock guards it, and
	count   uint64 // what the count was when it was confirmed

	mu      sync.Mutex // guards what follows
	id      string
	base    context.Context
	cancels []context.CancelCauseFunc
	freed   bool // a server said that it was released
	more    *more
}

// more is what few holds need.
type more struct {
	messages chan Message
	heard    func(Message) // instead of messages
	alarm    alarm         // for a deadline of its own
	limits   bool          // it has to be looked at again and again
	lookAt   time.Duration
	looking  bool

	uncounted bool // the same, since the server does not count what others did
	refused   int  // looks in a row that a server would not answer now: to be tried again

	again    bool // somebody else wanted to look
	changing bool
}

// A Message is what somebody said to the holder.
type Message struct {
	By    string
	Text  string
	Break bool // an operator will break the lease at Until; Text is why
	Until time.Time
}

// Resource is the name of what is held.
func (h *Hold) Resource() string { return h.resource }

// ID is the lease's name on the server.
func (h *Hold) ID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.id
}

// Party names those who stand still together: a wait of any of them closes a circle with
// what others of them hold. What is acquired under Context belongs to it by itself; another
// process joins it with the option Party.
func (h *Hold) Party() string { return h.party }

// Token is the number to show to what the lease protects. It is larger than that of
// every holder before. Once the hold is lost it is 0, which every guard refuses.
func (h *Hold) Token() leasehold.Token {
	if h.check() != nil {
		return 0
	}
	return leasehold.Token(h.token.Load())
}

// Floor is the smallest token that was alive on the resource when it was granted: that
// of the hold itself, unless it is shared. A guard keeps the largest floor it saw.
func (h *Hold) Floor() leasehold.Token {
	if h.check() != nil {
		return 0
	}
	return h.floor
}

// Slots is how many slots are held; 0: all of them, exclusively.
func (h *Hold) Slots() int { return h.slots }

// Units are the names of the slots that are held, if they have names.
func (h *Hold) Units() []string { return slices.Clone(h.units) }

// After is the unclean end of the lease before this one, if the resource's definition says
// that the next holder is to be warned of it; else nil. What that holder did may be half
// done.
func (h *Hold) After() *leasehold.Ending { return h.after }

// Valid tells whether the resource is surely still ours. It reads the clock.
func (h *Hold) Valid() bool { return h.check() == nil }

// Err is nil while the hold is valid, and then a *LostError.
func (h *Hold) Err() error {
	if lost := h.check(); lost != nil {
		return lost
	}
	return nil
}

// Expires is when the hold ends if it is not renewed, on the calendar of this
// machine. It is for people to read.
func (h *Hold) Expires() time.Time { return time.Now().Add(h.Remaining()) }

// Remaining is how long the hold is valid if it is not renewed; 0 if it is lost.
func (h *Hold) Remaining() time.Duration {
	if h.check() != nil {
		return 0
	}
	return max(0, h.deadline()-h.session.clock())
}

// Lost is closed when the hold is lost or released. Err says how.
func (h *Hold) Lost() <-chan struct{} { return h.Context().Done() }

// Context ends when the hold is lost or released, and context.Cause says how. It has
// the values of the context that the hold was acquired with, but does not end with it.
// What is acquired under it belongs to the same party: if such waits close a circle,
// the server refuses the last of them.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	base := h.base
	h.mu.Unlock()
	if base != nil {
		return base
	}
	fresh := h.contextUnder(h.values)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.base == nil {
		h.base = fresh
	}
	return h.base
}

// Touch says that the work goes on, for RenewOnActivity.
func (h *Hold) Touch() {
	s := h.session
	s.mu.Lock()
	first := !s.touched
	s.touched = true
	due := s.renewAt
	s.mu.Unlock()
	if first {
		s.client.keeper.set(&s.alarm, due)
	}
}

// Renew renews the lease now, for RenewByHand. The error is an ErrLost if there is
// nothing to renew any more.
func (h *Hold) Renew(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	err := h.session.renewUntil(ctx)
	if lost := h.Err(); lost != nil {
		return lost
	}
	return err
}

// Messages are what is said to the holder: by ask, and by a break that is announced.
// The channel is never closed. What nobody reads is dropped, the oldest first.
func (h *Hold) Messages() <-chan Message { return h.inbox() }

func (h *Hold) inbox() chan Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.moreLocked()
	if m.messages == nil {
		m.messages = make(chan Message, 16)
	}
	return m.messages
}

func (h *Hold) moreLocked() *more {
	if h.more == nil {
		h.more = &more{}
		h.more.alarm.ring = h.ring
	}
	return h.more
}

// onMessage has messages told to a function, which must not block, those too that have
// come already.
func (h *Hold) onMessage(heard func(Message)) {
	h.mu.Lock()
	m := h.moreLocked()
	m.heard = heard
	waiting := len(m.messages) > 0
	h.mu.Unlock()
	if waiting {
		heard(<-m.messages)
	}
}

// deliver puts a message in the box, and the oldest out if there is no room.
func (h *Hold) deliver(m Message) {
	h.mu.Lock()
	heard := h.moreLocked().heard
	h.mu.Unlock()
	if heard != nil {
		heard(m)
		return
	}
	box := h.inbox()
	for {
		select {
		case box <- m:
			return
		default:
		}
		select {
		case <-box:
		default:
		}
	}
}

// Release gives the resource back. Call it when the work has ended, not when it was
// told to end. It may be called again, and does nothing then.
//
// The error is an ErrLost if the hold had been lost before: some of the work was not
// protected. It is another one if no server could be told until ctx ended, or for 15 s;
// the client goes on trying.
func (h *Hold) Release(ctx context.Context) error {
	earlier := h.lose(&LostError{How: leasehold.Released})
	if earlier != nil && errors.Is(earlier, ErrReleased) {
		earlier = nil
	}
	h.mu.Lock()
	id, freed := h.id, h.freed
	h.mu.Unlock()
	if !freed {
		if err := h.release(ctx, id, earlier); err != nil {
			return err
		}
		h.mu.Lock()
		h.freed = true
		h.mu.Unlock()
	}
	if earlier != nil {
		return earlier
	}
	return nil
}

// giveBack is a release that nobody waits for longer than it takes.
func (h *Hold) giveBack() {
	if err := h.Release(h.values); err != nil && !errors.Is(err, ErrLost) {
		h.session.client.log.Warn("a lease could not be released yet", "resource", h.resource, "err", err)
	}
}

// release tells a server that a lease is not needed any more. A lease that was lost is
// released too, where it may still be alive: others need not wait for its end then.
func (h *Hold) release(ctx context.Context, id string, lost *LostError) error {
	s := h.session
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	send := func(ctx context.Context, w *v1.Caller) error {
		r := v1.ReleaseRequest{ID: id}
		if w.Level() >= v1.LevelMany {
			r.Session = s.id // else it would count as what others did
		}
		return w.Release(ctx, r)
	}
	if lost != nil {
		if lost.How.Clean() || lost.How == leasehold.ByBreak {
			return nil // the server itself said that it ended
		}
		_ = s.client.servers.Once(ctx, s.attempt(), send)
		return nil
	}
	err := s.client.servers.Retry(ctx, s.attempt(), send)
	for isGone(err) {
		// Somebody may have given it another id, and we have not heard of that yet.
		if id = h.movedTo(ctx, id); id == "" {
			break
		}
		err = s.client.servers.Retry(ctx, s.attempt(), send)
	}
	if err == nil || isGone(err) {
		if s.alone {
			s.client.background(func(ctx context.Context) { _ = s.close(ctx) })
		}
		return nil
	}
	s.owe(id) // often it is only ctx that has ended
	return err
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

// lose ends the hold, once. It returns how it had been lost before, if so.
func (h *Hold) lose(why *LostError) (earlier *LostError) {
	why.Resource, why.Token = h.resource, leasehold.Token(h.token.Load())
	if !h.lost.CompareAndSwap(nil, why) {
		return h.lost.Load()
	}
	h.mu.Lock()
	id, cancels, m := h.id, h.cancels, h.more
	h.cancels = nil
	h.mu.Unlock()
	if m != nil {
		h.session.client.keeper.remove(&m.alarm)
	}
	h.session.remove(id)
	for _, cancel := range cancels {
		cancel(why)
	}
	return nil
}

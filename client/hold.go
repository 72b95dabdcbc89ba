package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
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
	session   *Session
	resource  string
	holder    string
	party     string
	values    context.Context // of the acquire, never ending
	floor     leasehold.Token
	slots     int
	units     []string
	after     *leasehold.Ending
	token     atomic.Uint64
	limitedAt atomic.Int64 // a deadline of its own; 0: only the session's
	frozenAt  atomic.Int64 // the deadline that it was left with when it could not be confirmed; 0: none
	lost      atomic.Pointer[LostError]

	counted       bool   // whether the server counts; the session's lock guards it, and
	interventions uint64 // what the count was when it was confirmed

	mu      sync.Mutex // guards what follows
	id      string
	base    context.Context
	cancels []context.CancelCauseFunc
	freed   bool // a server said that it was released
	extra   *extra
}

// extra is what few holds need.
type extra struct {
	messages   chan Message
	onMessage  func(Message) // instead of messages
	timer      timer         // for a deadline of its own
	hasLimit   bool          // it has to be looked at again and again
	recheckAt  time.Duration
	rechecking bool

	uncounted      bool // the same, since the server does not count what others did
	failedRechecks int  // looks in a row that a server would not answer now: to be tried again

	recheckAgain bool // somebody else wanted to look
	changing     bool
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

func (h *Hold) extraLocked() *extra {
	if h.extra == nil {
		h.extra = &extra{}
		h.extra.timer.fire = h.fire
	}
	return h.extra
}

// lose ends the hold, once. It returns how it had been lost before, if so.
func (h *Hold) lose(why *LostError) (earlier *LostError) {
	why.Resource, why.Token = h.resource, leasehold.Token(h.token.Load())
	if !h.lost.CompareAndSwap(nil, why) {
		return h.lost.Load()
	}
	h.mu.Lock()
	id, cancels, m := h.id, h.cancels, h.extra
	h.cancels = nil
	h.mu.Unlock()
	if m != nil {
		h.session.client.scheduler.remove(&m.timer)
	}
	h.session.remove(id)
	for _, cancel := range cancels {
		cancel(why)
	}
	return nil
}

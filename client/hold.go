package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// A Hold is a lease that this client holds. The client renews it. The Hold knows its own
// deadline, which is before anybody else can be granted the resource, and reports when it has
// passed: Context ends, with a cause, and Valid returns false.
//
// Valid, Token, Err and Context().Err() read the clock at each call, so they are right even in
// the first line after a pause, when no timer has run yet. Contexts derived from Context end a
// moment later. A process can still be paused between Valid and what it does next: show Pass to a
// guard of package fence, or Token to what you protect.
type Hold struct {
	session   *Session
	resource  string                 // that was asked for
	task      atomic.Pointer[string] // that was granted of it, if it is a folder of tasks
	holder    string
	party     string
	values    context.Context // the values of the acquire's context
	floor     atomic.Uint64
	slots     int
	units     []string
	after     *leasehold.Ending
	token     atomic.Uint64
	limitedAt atomic.Int64 // a deadline of its own; 0: only the session's
	frozenAt  atomic.Int64 // its deadline while no answer has confirmed it; 0: it follows the session
	lost      atomic.Pointer[LostError]

	// The session's lock guards these; see interventions.go.
	counted       bool   // whether the server counts interventions
	interventions uint64 // the count at which the lease was last confirmed

	mu      sync.Mutex // guards what follows
	id      string
	base    context.Context
	cancels []context.CancelCauseFunc
	freed   bool // a server has released it
	extra   *extra
}

// extra is what few holds need. Most have none, so that ten thousand holds are small.
type extra struct {
	messages   chan Message
	onMessage  func(Message) // instead of messages
	timer      timer         // for a deadline of its own
	hasLimit   bool          // its limit has to be rechecked at intervals
	limitKnown time.Duration // when an answer last told its limit
	recheckAt  time.Duration
	rechecking bool

	uncounted      bool // rechecked at intervals, since the server does not count interventions
	failedRechecks int  // in a row

	recheckAgain bool // another recheck must follow the one under way
	changing     bool // Change is under way
}

// Resource returns the name of the resource.
func (h *Hold) Resource() string {
	if task := h.task.Load(); task != nil {
		return *task
	}
	return h.resource
}

// ID returns the lease's id on the server.
func (h *Hold) ID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.id
}

// ref names the lease, as it is called now.
func (h *Hold) ref() store.Ref { return store.Ref{Resource: h.Resource(), ID: h.ID()} }

// Party returns the party that the hold belongs to. The server refuses a wait that would close a
// cycle of parties waiting for each other. What is acquired under Context joins the party;
// another process joins it with the option Party.
func (h *Hold) Party() string { return h.party }

// Token returns the fencing token, to be shown to what the lease protects. It is larger than
// that of every holder before. Once the hold is lost it is 0, which every guard refuses.
func (h *Hold) Token() leasehold.Token {
	if h.check() != nil {
		return 0
	}
	return leasehold.Token(h.token.Load())
}

// Floor returns the smallest token that was alive on the resource when this one was given: that of the
// hold itself, unless it is shared. A guard keeps the largest floor it saw.
func (h *Hold) Floor() leasehold.Token {
	if h.check() != nil {
		return 0
	}
	return leasehold.Token(h.floor.Load())
}

// Pass returns what a guard of package fence has to see: resource, token and floor, as of one
// moment. Once the hold is lost the pass has no token, and every guard refuses it. Take it for each
// write: a pass that is kept outlives the hold, and only the guard can tell then.
func (h *Hold) Pass() fence.Pass {
	pass := fence.Pass{Resource: h.Resource()}
	if h.check() == nil {
		pass.Token, pass.Floor = leasehold.Token(h.token.Load()), leasehold.Token(h.floor.Load())
	}
	return pass
}

// Slots returns how many slots are held; 0: all of them, exclusively.
func (h *Hold) Slots() int { return h.slots }

// Units returns the names of the slots that are held, if they have names.
func (h *Hold) Units() []string { return slices.Clone(h.units) }

// After returns the unclean end of the lease before this one, if the resource's definition says
// to warn of it; else nil. That holder's work may be half done.
func (h *Hold) After() *leasehold.Ending { return h.after }

// Valid reports whether the resource is surely still ours. It reads the clock.
func (h *Hold) Valid() bool { return h.check() == nil }

// Err returns nil while the hold is valid, and a *LostError afterwards.
func (h *Hold) Err() error {
	if lost := h.check(); lost != nil {
		return lost
	}
	return nil
}

// Expires returns when the hold ends without a renewal, by this machine's wall clock. It is for
// people to read.
func (h *Hold) Expires() time.Time { return time.Now().Add(h.Remaining()) }

// Remaining returns how long the hold is valid without a renewal; 0 if it is lost.
func (h *Hold) Remaining() time.Duration {
	if h.check() != nil {
		return 0
	}
	return max(0, h.deadline()-h.session.clock())
}

// Lost returns a channel that is closed when the hold is lost or released. Err says how.
func (h *Hold) Lost() <-chan struct{} { return h.Context().Done() }

// Context returns a context that ends when the hold is lost or released; context.Cause says how.
// It has the values of the context that the hold was acquired with, but does not end with it.
// What is acquired under it belongs to the same party: if such waits close a cycle, the server
// refuses the last of them.
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

// extraLocked returns the rarely needed fields, and allocates them at the first call: a client may
// have very many holds.
func (h *Hold) extraLocked() *extra {
	if h.extra == nil {
		h.extra = &extra{}
		h.extra.timer.fire = h.fire
	}
	return h.extra
}

// lose ends the hold, once. If it was lost before, lose returns how. The first reason wins: an
// operator's break must not turn into an expiry because the clock ran on.
func (h *Hold) lose(why *LostError) (earlier *LostError) {
	why.Resource, why.Token = h.Resource(), leasehold.Token(h.token.Load())
	if !h.lost.CompareAndSwap(nil, why) {
		return h.lost.Load()
	}
	if h.session.local && why.How == leasehold.ByTTL {
		h.session.client.expired.Add(1)
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

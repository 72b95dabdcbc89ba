package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Feed tells watchers that history grew, and waiting requests that their turn came. It keeps
// no queue for anybody: a watcher reads shared history at its own pace, so a slow one costs
// nothing but its own lag.
//
// A channel is closed and replaced for each change, rather than sent to: any number of watchers
// can wait on it, and the engine never waits for one of them.
type Feed struct {
	*hub
	gate Gate // nil: everybody sees everything
}

// A hub is what all feeds of an engine share.
type hub struct {
	policy atomic.Pointer[access.Policy] // as of the newest entry; nil: access is off

	mu      sync.Mutex // guards what follows
	spaces  map[string]*channel
	none    core.History    // of a namespace in which nothing happened yet
	born    chan struct{}   // closed when a namespace appears
	turns   map[claim]*turn // of the claims that somebody waits for
	changed chan struct{}   // closed when the policy is another
	closed  bool
}

// A channel is what is published of one namespace.
type channel struct {
	history core.History
	grew    chan struct{} // closed when history is replaced
	touched chan struct{} // closed when there was an intervention in what was added
}

// wake wakes all who follow the namespace.
func (c *channel) wake() {
	close(c.grew)
	close(c.touched)
}

// NewFeed returns a feed without history.
func NewFeed() *Feed {
	return &Feed{hub: &hub{spaces: map[string]*channel{}, born: make(chan struct{}), turns: map[claim]*turn{},
		changed: make(chan struct{})}}
}

// Publish makes known what was applied: the events, and with them the histories of their
// namespaces. Only the engine calls it, between two entries, so a watcher never sees a part of
// one.
func (f *Feed) Publish(view core.View, events []*leasehold.Event) {
	if policy := view.Policy(); policy != f.policy.Load() {
		f.govern(policy)
	}
	forgot := view.Forgot()
	if len(events) == 0 && len(forgot) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last, touched := "", slices.ContainsFunc(events, intervenes)
	for _, e := range events {
		if e.Namespace != last {
			last = e.Namespace
			f.replace(last, view.History(last), touched)
		}
		switch e.Kind {
		case leasehold.Acquired, leasehold.Left, leasehold.Ended:
			f.notify(view, e)
		}
	}
	if len(forgot) > 0 {
		f.none = view.History("")
	}
	for _, namespace := range forgot {
		f.remove(namespace)
	}
}

// PublishAll makes known a state that was not built up entry by entry: the one
// that an engine starts with, or got from another node.
func (f *Feed) PublishAll(view core.View) {
	f.govern(view.Policy())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.none = view.History("")
	there := view.Namespaces() // in order
	for namespace := range f.spaces {
		if _, found := slices.BinarySearch(there, namespace); !found {
			f.remove(namespace)
		}
	}
	for _, namespace := range there {
		f.replace(namespace, view.History(namespace), true)
	}
	for key, t := range f.turns {
		close(t.came) // without an answer: those who wait have to look
		delete(f.turns, key)
	}
}

// Close wakes everybody, for good.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	close(f.born)
	close(f.changed)
	for _, c := range f.spaces {
		c.wake()
	}
	for _, t := range f.turns {
		close(t.came)
	}
	f.turns = nil
}

// History returns the events of a namespace and a channel that is closed when
// there are more. After Close it returns false.
//
// What is behind a gate is for watches alone: there is none then, as after Close.
func (f *Feed) History(namespace string) (core.History, <-chan struct{}, bool) {
	if f.gate != nil {
		return core.History{}, nil, false
	}
	return f.history(namespace, false)
}

// history is History, where the channel may be for interventions alone.
func (f *Feed) history(namespace string, interventions bool) (core.History, <-chan struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return core.History{}, nil, false
	}
	c := f.spaces[namespace]
	switch {
	case c == nil:
		// Nothing is kept for a name that only a watcher has used.
		return f.none, f.born, true
	case interventions:
		return c.history, c.touched, true
	}
	return c.history, c.grew, true
}

// remove forgets a namespace, and wakes those who follow it: what they have seen is gone.
func (f *Feed) remove(namespace string) {
	if c := f.spaces[namespace]; c != nil && !f.closed {
		c.wake()
		delete(f.spaces, namespace)
	}
}

// replace publishes a history, and wakes those who wait for interventions only if there was one.
func (f *Feed) replace(namespace string, h core.History, touched bool) {
	if f.closed {
		return
	}
	c := f.spaces[namespace]
	switch {
	case c == nil:
		close(f.born)
		f.born = make(chan struct{})
		c = &channel{touched: make(chan struct{})}
		f.spaces[namespace] = c
	case touched:
		c.wake()
		c.touched = make(chan struct{})
	default:
		close(c.grew)
	}
	c.history, c.grew = h, make(chan struct{})
}

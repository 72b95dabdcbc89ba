package engine

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

type claim struct{ namespace, id string }

// A turn is the wait of all requests for one claim. It is over at the next event about it.
type turn struct {
	came    chan struct{}
	waiters int

	// command is what the first of them asked for; nil: it wants no answer. The answer is set,
	// before came is closed, if the event was a grant.
	command *core.Acquire
	answer  core.Answer
}

// A Turn is one request's wait for a claim. Stop must be called when it is no longer needed.
type Turn struct {
	feed    *Feed
	key     claim
	turn    *turn
	command *core.Acquire
}

// Turn begins to wait for what an acquire asks for. What happened before, it does not tell: look
// at the state after this, and only then wait.
func (f *Feed) Turn(c *core.Acquire) *Turn { return f.await(c.Namespace, c.ID, c) }

// Await returns a channel that is closed at the next event about a claim, and a function to call
// when it is no longer needed.
func (f *Feed) Await(namespace, id string) (<-chan struct{}, func()) {
	t := f.await(namespace, id, nil)
	return t.Came(), t.Stop
}

func (f *Feed) await(namespace, id string, c *core.Acquire) *Turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := claim{namespace, id}
	if f.closed {
		over := &turn{came: make(chan struct{})}
		close(over.came)
		return &Turn{feed: f, key: key, turn: over, command: c}
	}
	t := f.turns[key]
	if t == nil {
		t = &turn{came: make(chan struct{})}
		f.turns[key] = t
	}
	if t.command == nil {
		t.command = c
	}
	t.waiters++
	return &Turn{feed: f, key: key, turn: t, command: c}
}

// Came is closed at the next event about the claim, when the feed is closed, and when the state was
// replaced by another.
func (t *Turn) Came() <-chan struct{} { return t.turn.came }

// Granted returns the lease as it was granted, after Came was closed; false if it was not, or if
// that is not known here: then the state has to be read.
//
// It needs no read, because the grant is in the log, and came after the request: that nobody has
// taken the lease away since, a read could not promise either.
func (t *Turn) Granted() (core.Answer, bool) {
	given := t.turn.answer
	if given.Lease == nil || t.command == nil || !slices.Equal(t.command.Also, t.turn.command.Also) {
		return core.Answer{}, false
	}
	lease := *given.Lease
	return core.Answer{Lease: &lease, Also: slices.Clone(given.Also)}, true
}

// Stop ends the wait.
func (t *Turn) Stop() {
	f := t.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.turn.waiters--; t.turn.waiters == 0 && f.turns[t.key] == t.turn {
		delete(f.turns, t.key)
	}
}

// maxDelivery is how much work is done to deliver what one entry granted, in the units of the core:
// as much as the entry itself may take. Those who are left out read the state.
const maxDelivery = 4096

// notify ends the wait for the claim of an event. A grant goes with it, as the state shows it after
// the whole entry: one that the same entry ended again is not handed over. Any other outcome is left to
// those who wait, since to say who is in the way costs more than an entry can afford for all.
func (f *Feed) notify(view core.View, e *leasehold.Event) {
	key := claim{e.Namespace, e.ID}
	t := f.turns[key]
	if t == nil {
		return
	}
	if e.Kind == leasehold.Acquired && t.command != nil && view.Work() < maxDelivery {
		if answer := view.Claims(t.command); answer.Lease != nil {
			t.answer = answer
		}
	}
	close(t.came)
	delete(f.turns, key)
}

package engine

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Gate decides who may follow what. Doors have feeds behind one. Who asks is in the context: see WithAsker.
type Gate interface {
	// Watch lets somebody follow a namespace until ctx ends, or returns why not.
	Watch(ctx context.Context, namespace string) (Sight, error)

	// Wait returns why somebody may no longer wait for what it asked for; nil: it may.
	Wait(ctx context.Context, c *core.Acquire) error

	// Stay returns a context for a wait: see the function of that name.
	Stay(ctx context.Context) (staying context.Context, leave func())
}

// A Sight is what one watch may see. It belongs to one goroutine.
type Sight interface {
	// Look returns why the watch cannot go on. It is called before events are shown, and whenever the policy changed.
	Look() error

	// Shows reports whether the watch may see an event.
	Shows(e *leasehold.Event) bool
}

// Behind returns the feed as it is seen through a gate.
func (f *Feed) Behind(g Gate) *Feed { return &Feed{f.hub, g} }

// Changed returns a channel that is closed when the policy is another, or the feed is closed.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Closed reports whether the engine has ended.
func (f *Feed) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Wake has all watches look again, as a new policy does.
func (f *Feed) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

// govern makes a policy known. Watches look again at once, and those who wait are told by Changed.
func (f *Feed) govern(policy *access.Policy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policy.Swap(policy) != policy {
		f.wake()
	}
}

func (f *Feed) wake() {
	if f.closed {
		return
	}
	close(f.changed)
	f.changed = make(chan struct{})
	close(f.born)
	f.born = make(chan struct{})
	for _, c := range f.spaces {
		c.wake()
		c.grew, c.touched = make(chan struct{}), make(chan struct{})
	}
}

// Stay returns a context for a request that waits. It ends with ctx, and as soon as nobody can know any more who may
// wait, because no leader was heard for too long. Call leave when the wait is over.
func Stay(ctx context.Context, e Engine) (staying context.Context, leave func()) {
	if gate := e.Feed().gate; gate != nil {
		return gate.Stay(ctx)
	}
	return ctx, func() {}
}

// watch asks the gate, if there is one.
func (f *Feed) watch(ctx context.Context, namespace string) (Sight, error) {
	if f.gate == nil {
		return nil, nil
	}
	return f.gate.Watch(ctx, namespace)
}

// mayWait asks the gate, if there is one.
func (f *Feed) mayWait(ctx context.Context, c *core.Acquire) error {
	if f.gate == nil {
		return nil
	}
	return f.gate.Wait(ctx, c)
}

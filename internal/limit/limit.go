// Package limit makes contexts that end after a while, or with another one, and that cost next to nothing unless
// somebody waits for them. A request has several limits, one inside the other, and nearly always ends long before
// any of them: a connection that looks at the time itself, by Parts, needs no timer for each. It also has budgets that
// clients share.
package limit

import (
	"context"
	"sync"
	"time"
)

// A Context is what package context would make, later.
type Context struct {
	parent context.Context
	also   context.Context // that it ends with, too; nil: none
	at     time.Time       // zero: never
	cause  error           // if it ends then; nil: that it did

	mu      sync.Mutex      // guards what follows
	real    context.Context // made when it is needed
	cancel  func()
	stopped bool
}

var _ context.Context = (*Context)(nil)

// After returns a context that ends after a while. As with package context, call Stop when it is no longer needed.
func After(parent context.Context, d time.Duration) *Context { return AfterCause(parent, d, nil) }

// AfterCause is After with what context.Cause then says.
func AfterCause(parent context.Context, d time.Duration, cause error) *Context {
	return &Context{parent: parent, at: time.Now().Add(d), cause: cause}
}

// Both returns a context that ends with its parent or with another one, and has the values of its parent.
func Both(parent, also context.Context) *Context { return &Context{parent: parent, also: also} }

// Within returns a context that ends after a while, or its parent if that ends earlier, or if d is 0: no limit.
func Within(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := parent.Deadline(); d == 0 || ok && time.Until(end) <= d {
		return parent, func() {}
	}
	c := After(parent, d)
	return c, c.Stop
}

// Parts returns what a context ends with: another one, perhaps a second, and a moment. The second is nil, and the
// moment zero, if there is none.
func Parts(ctx context.Context) (base, also context.Context, at time.Time) {
	base = ctx
	for {
		c, ok := base.(*Context)
		switch {
		case !ok:
			return base, also, at
		case c.also != nil && also != nil:
			return ctx, nil, time.Time{} // it has too many, and waits for them itself
		case c.also != nil:
			also = c.also
		}
		if !c.at.IsZero() && (at.IsZero() || c.at.Before(at)) {
			at = c.at
		}
		base = c.parent
	}
}

// Stop ends the context.
func (c *Context) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline returns when it ends at the latest.
func (c *Context) Deadline() (time.Time, bool) {
	at, ok := c.parent.Deadline()
	if c.at.IsZero() || ok && at.Before(c.at) {
		return at, ok
	}
	return c.at, true
}

// Done makes the context real.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.realLocked().Done()
}

// Err returns why it has ended. It reads the clock.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.real == nil && !c.at.IsZero() && !time.Now().Before(c.at)
	switch {
	case c.real != nil, c.stopped, late, c.also != nil && c.also.Err() != nil:
		return c.realLocked().Err() // which also makes context.Cause right
	}
	return c.parent.Err()
}

// Value returns a value of the parent.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	real := c.real
	c.mu.Unlock()
	if real != nil {
		return real.Value(key)
	}
	return c.parent.Value(key)
}

func (c *Context) realLocked() context.Context {
	if c.real != nil {
		return c.real
	}
	if c.at.IsZero() {
		c.real, c.cancel = context.WithCancel(c.parent)
	} else {
		c.real, c.cancel = context.WithDeadlineCause(c.parent, c.at, c.cause)
	}
	if c.also != nil {
		cancel := c.cancel
		stop := context.AfterFunc(c.also, cancel)
		c.cancel = func() { stop(); cancel() }
	}
	if c.stopped || c.also != nil && c.also.Err() != nil {
		c.cancel()
	}
	return c.real
}

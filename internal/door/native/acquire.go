package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

func (c *call) acquire() error {
	var body v1.AcquireRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toAcquire(&body)
	if err != nil {
		return err
	}
	// A request with a name may be the second try of one that waits.
	if command.Wait > 0 || command.Request != (core.Request{}) {
		return c.acquireWaiting(command)
	}
	answer, err := engine.Acquire(c.signed(), c.door.backend.Engine(), command, !c.made)
	if err != nil {
		return err
	}
	return c.granted(command, answer, grant{warning: warn(command.TTL)})
}

// granted sends a lease to who asked for it. If that one is gone, and does not know
// the id to ask for it again, the lease would serve nobody: it is given back.
func (c *call) granted(command *core.Acquire, answer core.Answer, g grant) error {
	nameless := c.made && command.Request == (core.Request{})
	if !nameless || c.ctx.Err() == nil {
		g.also = answer.Also
		if g.warning == "" && c.wholePool(answer.Lease) {
			g.warning = fmt.Sprintf("this lease takes all %d units of %s, since the request does not say how many: "+
				"for one of them send \"slots\": 1, for all \"slots\": \"all\"", len(answer.Lease.Units),
				command.Resource)
		}
		return c.sendLease(answer.Lease, g)
	}
	engine.Withdraw(c.signed(), c.door.backend.Engine(), command)
	return engine.Undecided("the caller left before " + command.Resource + " was granted")
}

// wholePool reports whether a lease took all units although nobody said so.
func (c *call) wholePool(l *leasehold.Lease) bool {
	return !c.saidAll && l != nil && l.Slots == 0 && len(l.Units) > 1
}

// acquireWaiting holds the request open until it is decided, the caller leaves, or
// the server stops.
func (c *call) acquireWaiting(command *core.Acquire) error {
	leave, err := c.door.backend.Stay()
	if err != nil {
		return err
	}
	defer leave()
	c.stay()
	ctx, cancel := c.door.backend.Staying(c.signed(), c.proof)
	defer cancel()

	began := time.Now()
	try := &attempt{Engine: c.door.backend.Engine()}
	answer, err := engine.Acquire(ctx, try, command, !c.made)
	c.waited = try.queued
	c.writeWithin(writeTime)
	if err != nil {
		if ended := door.Ended(ctx); ended != nil {
			return ended
		}
		if c.door.backend.Stopping().Err() != nil && ctx.Err() != nil && errors.Is(err, leasehold.ErrUndecided) {
			return try.stopped(command)
		}
		return err
	}
	g := grant{warning: warn(command.TTL)}
	if try.queued {
		g.waited = max(time.Since(began), 1)
	}
	return c.granted(command, answer, g)
}

// An attempt notices, on the way to the engine, what an acquire that waits came
// to: whether it stood in the queue, and whether it was taken back.
type attempt struct {
	engine.Engine
	queued    bool
	withdrawn bool
}

func (a *attempt) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := a.Engine.Do(ctx, command)
	switch command.(type) {
	case *core.Acquire:
		a.queued = answer.Waiter != nil
	case *core.Release:
		a.withdrawn = err == nil || errors.Is(err, leasehold.ErrLost)
	}
	return answer, err
}

// stopped is the answer to who waits at a server that stops. What was taken back
// did not happen; what has a name keeps its place in the queue, and the caller
// finds it there by asking again.
func (a *attempt) stopped(command *core.Acquire) error {
	if a.withdrawn {
		return engine.Unavailable(door.StoppingMessage)
	}
	return engine.Undecided("the server is stopping, and the request for " + command.Resource +
		" keeps its place for a while: ask again with the same id or key")
}

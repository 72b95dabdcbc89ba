package native

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
)

// acquireLong carries out an acquire that waits, or may be the second try of one that does.
func (c *call) acquireLong(command *core.Acquire) (bool, error) {
	if command.Wait == 0 && command.Request == (core.Request{}) {
		return false, nil
	}
	return true, c.acquireWaiting(command)
}

// acquired answers an acquire that does not wait.
func (c *call) acquired(command *core.Acquire, answer core.Answer) error {
	if answer.Waiter != nil { // an earlier request with the same id waits
		return c.acquireWaiting(command)
	}
	return c.granted(command, answer, encode.Grant{Warning: warn(command.TTL)})
}

// notAcquired takes back what may have been granted to somebody who does not know its id.
func (c *call) notAcquired(command *core.Acquire, err error) error {
	if !c.nameless(command) || !errors.Is(err, leasehold.ErrUndecided) {
		return err
	}
	ctx := c.signed()
	if c.batched {
		go engine.Withdraw(ctx, c.door.backend.Engine(), command)
	} else {
		engine.Withdraw(ctx, c.door.backend.Engine(), command)
	}
	return err
}

// nameless reports whether nobody can ask again for what a request gets.
func (c *call) nameless(command *core.Acquire) bool {
	return c.made && command.Request == (core.Request{})
}

// granted sends a lease to who asked for it. If that one is gone, and does not know
// the id to ask for it again, the lease would serve nobody: it is given back.
func (c *call) granted(command *core.Acquire, answer core.Answer, g encode.Grant) error {
	if !c.nameless(command) || c.ctx.Err() == nil {
		g.Also = answer.Also
		if g.Warning == "" && c.wholePool(answer.Lease) {
			g.Warning = fmt.Sprintf("this lease takes all %d units of %s, since the request does not say how many: "+
				"for one of them send \"slots\": 1, for all \"slots\": \"all\"", len(answer.Lease.Units),
				command.Resource)
		}
		return c.sendLease(answer, g)
	}
	return c.notAcquired(command, engine.Undecided("the caller left before "+command.Resource+" was granted"))
}

// wholePool reports whether a lease took all units although nobody said so.
func (c *call) wholePool(l *leasehold.Lease) bool {
	return !c.saidAll && l != nil && l.Slots == 0 && len(l.Units) > 1
}

// acquireWaiting holds the request open until it is decided, the caller leaves, or
// the server stops.
func (c *call) acquireWaiting(command *core.Acquire) error {
	leave, err := c.door.backend.Stay(c.signed())
	if err != nil {
		return err
	}
	defer leave()
	c.stay()
	return c.acquireStaying(command, &attempt{Engine: c.door.backend.Engine()})
}

// acquireStaying waits, and answers.
func (c *call) acquireStaying(command *core.Acquire, try *attempt) error {
	ctx, cancel := c.door.backend.Staying(c.signed(), c.proof)
	defer cancel()
	began := time.Now()
	answer, err := engine.Acquire(ctx, try, command, !c.made)
	c.waited = try.queued
	c.within(writeTime)
	if err != nil {
		if ended := c.door.backend.Ended(ctx, c.proof, err); ended != nil {
			return ended
		}
		if c.door.backend.Stopping().Err() != nil && ctx.Err() != nil && errors.Is(err, leasehold.ErrUndecided) {
			return try.stopped(command)
		}
		return err
	}
	g := encode.Grant{Warning: warn(command.TTL)}
	if try.queued {
		g.Waited = max(time.Since(began), 1)
	}
	return c.granted(command, answer, g)
}

// An attempt notices, on the way to the engine, what an acquire that waits came
// to: whether it stood in the queue, and whether it was taken back.
type attempt struct {
	engine.Engine
	queued    bool
	withdrawn atomic.Bool              // it may be taken back after it was answered
	place     chan<- *leasehold.Waiter // is told of the place in the queue, once; nil: nobody is
}

func (a *attempt) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := a.Engine.Do(ctx, command)
	if _, acquires := command.(*core.Acquire); acquires {
		if a.queued = answer.Waiter != nil; a.queued && a.place != nil {
			a.place <- answer.Waiter
			a.place = nil
		}
	}
	if _, releases := command.(*core.Release); releases {
		a.withdrawn.Store(err == nil || errors.Is(err, leasehold.ErrLost))
	}
	return answer, err
}

// stopped is the answer to who waits at a server that stops. What was taken back
// did not happen; what has a name keeps its place in the queue, and the caller
// finds it there by asking again.
func (a *attempt) stopped(command *core.Acquire) error {
	if a.withdrawn.Load() {
		return engine.Unavailable(door.StoppingMessage)
	}
	return engine.Undecided("the server is stopping, and the request for " + command.Resource +
		" keeps its place for a while: ask again with the same id or key")
}

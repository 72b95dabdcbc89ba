package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
	"github.com/leasehold/leasehold/internal/wire"
)

// Do orders a command and returns its answer once it is durable.
func (e *Engine) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if err := e.check(command); err != nil {
		return core.Answer{}, err
	}
	if err := e.nameable(ctx, command); err != nil {
		return core.Answer{}, err
	}
	bytes, err := e.encode(ctx, command)
	if err != nil {
		return core.Answer{}, err
	}
	type result struct {
		answer core.Answer
		err    error
	}
	// Room for one, so that the node never waits for a caller that has gone.
	done := make(chan result, 1)
	call := replica.Call{Bytes: bytes, Done: func(a core.Answer, err error) {
		e.leave(len(bytes))
		done <- result{a, err}
	}}
	if err := e.enqueue(len(bytes), keepsOrEnds(command), func() { e.calls = append(e.calls, call) }); err != nil {
		return core.Answer{}, err
	}
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		// It may be in the log by now, and cannot be taken back.
		return core.Answer{}, engine.Undecided(
			"the request ended before its answer was known: ask again with the same id")
	}
}

// Submit orders commands that nobody waits for here: one lock and one wake-up for all of them.
func (e *Engine) Submit(batch []engine.Submission) {
	calls := make([]replica.Call, 0, len(batch))
	for _, s := range batch {
		call, err := e.submission(s)
		switch {
		case err != nil:
			s.Done(core.Answer{}, err)
		case call.Bytes != nil:
			calls = append(calls, call)
		}
	}
	if len(calls) == 0 {
		return
	}
	e.mu.Lock()
	stopped := isClosed(e.stopped)
	if !stopped {
		e.calls = append(e.calls, calls...)
		e.wake()
	}
	e.mu.Unlock()
	if stopped {
		for _, c := range calls {
			c.Done(core.Answer{}, errStopping)
		}
	}
}

// submission returns the call of a submission that was counted in. It has no bytes if the command goes another way.
func (e *Engine) submission(s engine.Submission) (replica.Call, error) {
	if s.Ctx.Err() != nil {
		return replica.Call{}, engine.ErrLeft
	}
	if err := e.check(s.Command); err != nil {
		return replica.Call{}, err
	}
	if len(core.LargeOf(s.Command)) > 0 {
		// Other servers may have to get the value first, and nobody waits here.
		go func() { s.Done(e.Do(s.Ctx, s.Command)) }()
		return replica.Call{}, nil
	}
	bytes, err := e.encode(s.Ctx, s.Command)
	if err != nil {
		return replica.Call{}, err
	}
	if err := e.enter(len(bytes), keepsOrEnds(s.Command)); err != nil {
		return replica.Call{}, err
	}
	return replica.Call{Bytes: bytes, Done: func(a core.Answer, err error) {
		e.leave(len(bytes))
		s.Done(a, err)
	}}, nil
}

// check refuses a command that needs no log for that: it costs the cluster nothing.
func (e *Engine) check(command core.Command) error {
	if err := command.Validate(); err != nil {
		return err
	}
	if err := wire.AtLevel(command, e.Level()); err != nil {
		return err
	}
	return e.room(command)
}

// encode writes a command as it will be in the log, behind its origin and who asks for it.
func (e *Engine) encode(ctx context.Context, command core.Command) (bytes []byte, err error) {
	if engine.HasOrigin(command) {
		origin, err := engine.OriginOf(ctx)
		if err != nil {
			return nil, err
		}
		bytes = wire.AppendOrigin(nil, origin)
	}
	// Below level 4 nobody decides by it.
	if asker := engine.AskerOf(ctx); asker != nil && e.Level() >= core.Level4 {
		if err := engine.CheckAsker(asker); err != nil {
			return nil, err
		}
		bytes = wire.AppendAsker(bytes, asker)
	}
	bytes, err = wire.AppendCommand(bytes, command)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	return bytes, nil
}

// room refuses what would add to a disk that is nearly full. Whatever keeps or ends what is
// there goes on: a full disk must not cost a holder its lease.
func (e *Engine) room(command core.Command) error {
	if !storage.NeedsRoom(command) || !e.leaderIsFull() {
		return nil
	}
	return &leasehold.Error{Code: leasehold.Limited, Message: "the server's disk is nearly full: nothing new is " +
		"granted or written until there is room; renewals, releases and deletions go on"}
}

// leaderIsFull reports whether the leader has hardly any room. A follower without room takes
// part for as long as it can, and its clients are not refused for it.
func (e *Engine) leaderIsFull() bool {
	if leader := e.view.Load().leader; leader != e.id && leader != 0 {
		return e.network.isFull(leader)
	}
	return e.disk.Full()
}

// keepsOrEnds reports whether a holder keeps what it has by a command, or gives it back.
func keepsOrEnds(command core.Command) bool {
	switch command.(type) {
	case *core.Renew, *core.RenewSession, *core.Release, *core.CloseSession:
		return true
	}
	return false
}

// Read calls fn with a state that has everything that was answered before.
func (e *Engine) Read(ctx context.Context, fn func(core.View)) error {
	var once sync.Mutex // guards abandoned and the call of fn
	abandoned := false
	done := make(chan error, 1)
	call := replica.ReadCall{
		Read: func(v core.View) {
			once.Lock()
			defer once.Unlock()
			if !abandoned {
				fn(v)
			}
		},
		Done: func(err error) {
			e.leave(0)
			done <- err
		},
	}
	if err := e.enqueue(0, false, func() { e.reads = append(e.reads, call) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// fn writes to the caller's variables: it must not run after the caller has returned.
		once.Lock()
		defer once.Unlock()
		abandoned = true
		return engine.Unavailable("the request ended before it could be read: " + e.whoLeads())
	}
}

// whoLeads says, for an error, who leads as far as this server knows.
func (e *Engine) whoLeads() string {
	switch leader := e.view.Load().leader; leader {
	case 0:
		return "no leader is known"
	case e.id:
		return "this server leads, but a majority of the servers did not answer in time"
	default:
		return fmt.Sprintf("server %s leads, but did not answer in time", e.network.nameOf(leader))
	}
}

// enter counts a request in, if there is room for it. Requests that keep or end a lease have as
// much room again: a flood of others must cost nobody a lease.
func (e *Engine) enter(bytes int, keeps bool) error {
	room := int64(1)
	if keeps {
		room = 2
	}
	waiting, size := e.pending.Add(1), e.pendingBytes.Add(int64(bytes))
	if waiting > room*maxPending || size > room*maxPendingBytes {
		e.leave(bytes)
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"%d requests, or %d MiB of them, already wait for the log: try again in a moment", maxPending,
			maxPendingBytes>>20)}
	}
	return nil
}

// leave counts a request out.
func (e *Engine) leave(bytes int) {
	e.pending.Add(-1)
	e.pendingBytes.Add(-int64(bytes))
}

// enqueue adds something to what the loop takes next.
func (e *Engine) enqueue(bytes int, keeps bool, add func()) error {
	if err := e.enter(bytes, keeps); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if isClosed(e.stopped) {
		e.leave(bytes)
		return errStopping
	}
	add()
	e.wake()
	return nil
}

// wake tells the loop that there is something to take.
func (e *Engine) wake() {
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

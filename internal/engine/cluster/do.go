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
	larges := core.LargeOf(command)
	e.values.Hold(larges) // until it is known whether they are named
	if err := e.nameable(ctx, command); err != nil {
		e.values.LetAll(larges)
		return core.Answer{}, err
	}
	call, err := e.encode(make([]byte, 0, roomFor(command)), ctx, command)
	if err != nil {
		e.values.LetAll(larges)
		return core.Answer{}, err
	}
	type result struct {
		answer core.Answer
		err    error
	}
	// Room for one, so that the node never waits for a caller that has gone.
	done := make(chan result, 1)
	call.Done = func(a core.Answer, err error) {
		e.values.LetAll(larges)
		done <- result{a, err}
	}
	if err := e.enqueueCall(call, core.KeepsOrEnds(command)); err != nil {
		e.values.LetAll(larges)
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

// Submit orders commands that nobody waits for here: one lock and one step for all of them. If nothing else is under
// way, their write is carried out here.
func (e *Engine) Submit(batch []engine.Submission) {
	room := callRooms.Get().(*[]replica.Call)
	calls := (*room)[:0]
	defer func() {
		clear(calls)
		*room = calls
		callRooms.Put(room)
	}()
	// The commands share one piece of memory; one that is full is left to those who are in it.
	bytes := make([]byte, 0, len(batch)*usualBytes)
	for i := range batch {
		call, err := e.submission(bytes, &batch[i])
		switch {
		case err != nil:
			batch[i].Done(core.Answer{}, err)
		case call.Bytes != nil:
			bytes = call.Bytes[len(call.Bytes):cap(call.Bytes)][:0]
			call.Bytes = call.Bytes[:len(call.Bytes):len(call.Bytes)]
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
	}
	e.mu.Unlock()
	if stopped {
		for i := range calls {
			calls[i].Answer(core.Answer{}, errStopping)
		}
		return
	}
	e.complete(e.push())
}

// callRooms has room for the calls of one batch each.
var callRooms = sync.Pool{New: func() any { return new([]replica.Call) }}

// submission returns the call of a submission that was counted in. It has no bytes if the command goes another way.
func (e *Engine) submission(into []byte, s *engine.Submission) (call replica.Call, err error) {
	if s.Ctx.Err() != nil {
		return call, engine.ErrLeft
	}
	if err := e.check(s.Command); err != nil {
		return call, err
	}
	if len(core.LargeOf(s.Command)) > 0 {
		// Other servers may have to get the value first, and nobody waits here.
		s := *s
		go func() { s.Done(e.Do(s.Ctx, s.Command)) }()
		return call, nil
	}
	if call, err = e.encode(into, s.Ctx, s.Command); err != nil {
		return call, err
	}
	call.Done = s.Done
	return call, e.enter(len(call.Bytes), core.KeepsOrEnds(s.Command))
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

// usualBytes is room for a command, behind its origin and who asks, and usualTxn for a transaction, such as one that
// takes a lock by a linked record.
const (
	usualBytes = 112
	usualTxn   = 384
)

// roomFor is how many bytes a command usually has.
func roomFor(command core.Command) int {
	if _, ok := command.(*core.Txn); ok {
		return usualTxn
	}
	return usualBytes
}

// encode returns the call of a command, with its bytes as they will be in the log, behind its origin and who asks for
// it.
func (e *Engine) encode(into []byte, ctx context.Context, command core.Command) (call replica.Call, err error) {
	bytes := into
	if engine.HasOrigin(command) {
		if call.Origin, err = engine.OriginIn(ctx); err != nil {
			return call, err
		}
		if call.Origin != nil {
			bytes = wire.AppendOrigin(bytes, *call.Origin)
		}
	}
	if asker := engine.AskerOf(ctx); asker != nil {
		if err := engine.CheckAsker(asker); err != nil {
			return call, err
		}
		bytes = wire.AppendAsker(bytes, asker)
	}
	bytes, same, err := wire.Encode(bytes, command)
	if err != nil {
		return call, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	call.Bytes, call.Count = bytes, e
	if same {
		call.Command = command
	}
	return call, nil
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
			e.Leave(0)
			done <- err
		},
		Stale: engine.IsStale(ctx),
	}
	if err := e.enqueueRead(call); err != nil {
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
		e.Leave(bytes)
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"%d requests, or %d MiB of them, already wait for the log: try again in a moment", maxPending,
			maxPendingBytes>>20)}
	}
	return nil
}

// Leave counts a request out. Only the node calls it, and what is in this package.
func (e *Engine) Leave(bytes int) {
	e.pending.Add(-1)
	e.pendingBytes.Add(-int64(bytes))
}

// enqueueCall adds a call to what the node takes next, and has it take that.
func (e *Engine) enqueueCall(call replica.Call, keeps bool) error {
	bytes := len(call.Bytes)
	if err := e.enter(bytes, keeps); err != nil {
		return err
	}
	e.mu.Lock()
	stopped := isClosed(e.stopped)
	if !stopped {
		e.calls = append(e.calls, call)
	}
	e.mu.Unlock()
	return e.enqueued(bytes, stopped)
}

// enqueueRead is enqueueCall for a read.
func (e *Engine) enqueueRead(call replica.ReadCall) error {
	if err := e.enter(0, false); err != nil {
		return err
	}
	e.mu.Lock()
	stopped := isClosed(e.stopped)
	if !stopped {
		e.reads = append(e.reads, call)
	}
	e.mu.Unlock()
	return e.enqueued(0, stopped)
}

// enqueued has the node take what was added, unless it takes nothing any more.
func (e *Engine) enqueued(bytes int, stopped bool) error {
	if stopped {
		e.Leave(bytes)
		return errStopping
	}
	if w := e.push(); w != nil {
		e.disk.Leave(w) // the caller's context may end before the write does
	}
	return nil
}

// wake tells the loop that there is something to take.
func (e *Engine) wake() {
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

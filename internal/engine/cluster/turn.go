package cluster

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// replica.Node is a step function: one goroutine at a time may step it, the one that holds Engine.turn. Mostly that is
// the goroutine of a caller. A command that comes alone so goes from the connection that it came by to the disk and
// back without another goroutine, each of which would cost more than the command.
//
// Nobody holds the turn while a write is under way, so that the loop can step the node meanwhile: it has to hear of a
// disk that hangs, and of an election that this server has lost.

// push gives the node what callers brought, unless somebody has the turn: then the loop does. It returns the write that
// the node asks for, which is the caller's to have carried out; nil: none.
func (e *Engine) push() *replica.Write {
	if !e.turn.TryLock() {
		e.wake()
		return nil
	}
	defer e.turn.Unlock()
	defer decisive()
	if e.over {
		return nil
	}
	e.stepCalls()
	return e.yield()
}

// complete carries out a write, in the goroutine of a caller who waits for it anyway. What follows from it is left to
// the disk: others may be meant by that.
func (e *Engine) complete(w *replica.Write) {
	if w == nil {
		return
	}
	defer decisive() // the node would wait for a write that nobody carries out
	if w = e.written(e.disk.CarryOut(w)); w != nil {
		e.disk.Leave(w)
	}
}

// written gives the node the outcome of a write, with what callers brought meanwhile, and returns the next write; nil:
// none.
func (e *Engine) written(err error) *replica.Write {
	e.turn.Lock()
	defer e.turn.Unlock()
	defer decisive()
	if e.over {
		return nil // the write was given up before it came to an end
	}
	e.stepCalls()
	e.node.Step(replica.Written{Err: err})
	return e.yield()
}

// inTurn gives the loop its turn, and sets its alarm. It reports whether the loop is over.
func (e *Engine) inTurn(alarm *time.Timer, do func()) bool {
	e.turn.Lock()
	defer e.turn.Unlock()
	defer decisive() // with the turn: others would step the node before the process ends
	do()
	if w := e.settle(); w != nil {
		e.disk.Leave(w) // the loop must not hang with the disk
	}
	if e.over = e.ended(); e.over {
		return true
	}
	after, ok := e.node.NextWake()
	if !ok {
		e.wakesAt = 0
		alarm.Stop()
		return false
	}
	e.wakesAt, _ = e.node.WakeAt()
	alarm.Reset(after)
	return false
}

// settle ends a turn: it gives the node what the transport collected, and publishes who leads. It returns the write
// that the node asks for; nil: none.
func (e *Engine) settle() *replica.Write {
	// The transport must not call Step from within a step, so it keeps its events until here.
	for _, event := range e.carrier.take() {
		e.node.Step(event)
	}
	e.show()
	return e.disk.Asked()
}

// yield is settle for others than the loop. It wakes the loop for what is its own: to set its alarm earlier, and to
// end.
func (e *Engine) yield() *replica.Write {
	w := e.settle()
	at, ok := e.node.WakeAt()
	if ok && (e.wakesAt == 0 || at < e.wakesAt) || e.node.Failure() != nil || e.node.Stopped() {
		e.wake()
	}
	return w
}

// stepCalls gives the node what callers brought.
func (e *Engine) stepCalls() {
	calls, reads := e.take()
	if len(calls) > 0 {
		e.node.Step(replica.Commands(calls)) // which keeps none of it
		clear(calls)
		e.spare = calls
	}
	if len(reads) > 0 {
		e.node.Step(replica.Reads(reads))
	}
}

// take returns what callers brought since the last time, all at once: the more wait, the larger
// the batch that shares one write.
func (e *Engine) take() ([]replica.Call, []replica.ReadCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls, reads := e.calls, e.reads
	e.calls, e.reads, e.spare = e.spare[:0], nil, nil
	return calls, reads
}

// decisive lets a panic in a step end the process, as it would in the loop. Those who serve requests recover from
// panics, and a node cannot go on from the middle of a step.
func decisive() {
	if said := recover(); said != nil {
		crash(fmt.Sprintf("%v\n\n%s", said, debug.Stack()))
	}
}

// crash is another one in tests.
var crash = func(said string) {
	go panic(said)
	select {}
}

package cluster

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// stepCalls gives the node what callers brought.
func (e *Engine) stepCalls() {
	calls, reads := e.take()
	if len(calls) > 0 {
		e.node.Step(replica.Commands(calls))
	}
	if len(reads) > 0 {
		e.node.Step(replica.Reads(reads))
	}
}

// take returns what callers brought since the last time.
func (e *Engine) take() ([]replica.Call, []replica.ReadCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls, reads := e.calls, e.reads
	e.calls, e.reads = nil, nil
	return calls, reads
}

// loop is the only goroutine that touches the node.
func (e *Engine) loop() {
	defer e.finish()
	raftTicks := time.NewTicker(replica.TickEvery)
	defer raftTicks.Stop()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	e.node.Step(replica.RaftTick{}) // sets it going
	for !e.ended() {
		if after, ok := e.node.NextWake(); ok {
			wake.Reset(after)
		} else {
			wake.Stop()
		}
		select {
		case <-e.arrived:
			e.stepCalls()
		case event := <-e.events:
			e.step(event)
		case look := <-e.looks:
			look(e.node)
		case <-raftTicks.C:
			e.node.Step(replica.RaftTick{})
			e.lookAround()
		case <-wake.C:
			// While a great many leases end, tick after tick, the callers who are there
			// stand before the next tick.
			e.stepCalls()
			e.node.Step(replica.Wake{})
		}
	}
}

// step gives the node an event. A server that stops waits for others only for so long.
func (e *Engine) step(event replica.Event) {
	if _, stop := event.(replica.Stop); stop {
		e.stopAt = time.Now().Add(handOverWithin)
	}
	e.node.Step(event)
}

// lookAround does what has to be done every now and then.
func (e *Engine) lookAround() {
	e.watch.node(e.node.Statistics())
	if e.tick++; e.tick%10 != 0 {
		return
	}
	e.paceSums()
	e.tellHealth(e.disk.Full())
	if e.node.Serving() && e.disk.Full() && time.Since(e.gaveAt) > roomEvery {
		e.gaveAt = time.Now()
		e.leaveToRoomier()
	}
}

// tellHealth says to the others how this server does: they choose the next leader by it, and
// give a vote only to a server that has all large values.
func (e *Engine) tellHealth(lowRoom bool) {
	e.network.tellHealth(health{applied: e.node.Applied(), lowRoom: lowRoom, lacks: e.fetcher.lacks()})
}

// leaveToRoomier gives the lead to a server that has room on its disk, if there is one.
func (e *Engine) leaveToRoomier() {
	healths := e.network.healths()
	for _, id := range e.node.Roster().Voters() {
		if h, ok := healths[id]; ok && id != e.id && !h.lowRoom && e.node.Reachable(id) {
			e.log.Warn("the data disk is nearly full: giving the lead to a server that has room", "to",
				e.network.nameOf(id))
			e.node.Step(replica.Transfer{To: id})
			return
		}
	}
}

// ended publishes how the node is, and reports whether the loop is over.
func (e *Engine) ended() bool {
	for _, event := range e.carrier.take() {
		e.node.Step(event)
	}
	e.show()
	if err := e.node.Failure(); err != nil {
		e.log.Error("the server cannot go on", "err", err)
		e.expelled = e.node.Expelled()
		if e.failure = err; errors.Is(err, replica.ErrNoRoom) {
			e.tellHealth(true) // the others remember what it died of
		}
		close(e.failed)
		return true
	}
	// A snapshot in flight is given up: the log has everything that is in it.
	return e.node.Stopped() && (e.node.Idle() || time.Now().After(e.stopAt))
}

// show lets others know who leads.
func (e *Engine) show() {
	old, leader, serving := e.view.Load(), e.node.Leader(), e.node.Serving()
	if old.leader == leader && old.serving == serving {
		return
	}
	e.view.Store(&view{leader: leader, serving: serving, changed: make(chan struct{})})
	close(old.changed)
}

// finish answers everybody who still waits.
func (e *Engine) finish() {
	e.mu.Lock()
	close(e.stopped)
	e.mu.Unlock()
	calls, reads := e.take()
	for _, c := range calls {
		c.Done(core.Answer{}, errStopping)
	}
	for _, r := range reads {
		r.Done(errStopping)
	}
	e.node.Abandon()
	e.feed.Close()
}

package cluster

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// The loop brings the node what happens by itself: events of the disk and of the network, time, and callers that could
// not bring it themselves. See turn.go.

// loop steps the node until it fails or has stopped.
func (e *Engine) loop() {
	defer e.finish()
	raftTicks := time.NewTicker(replica.TickEvery)
	defer raftTicks.Stop()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	over := e.inTurn(alarm, func() { e.node.Step(replica.RaftTick{}) }) // sets it going
	for !over {
		select {
		case <-e.arrived:
			over = e.inTurn(alarm, e.stepCalls)
		case event := <-e.events:
			over = e.inTurn(alarm, func() { e.step(event) })
		case look := <-e.looks:
			over = e.inTurn(alarm, func() { look(e.node) })
		case <-raftTicks.C:
			over = e.inTurn(alarm, func() {
				e.node.Step(replica.RaftTick{})
				e.lookAround()
			})
		case <-alarm.C:
			over = e.inTurn(alarm, func() {
				// While a great many leases end, tick after tick, wake-ups follow each other
				// without a pause. Callers that are there go before the next tick, or a renewal
				// could starve.
				e.stepCalls()
				e.node.Step(replica.Wake{})
			})
		}
	}
}

// step gives the node an event. A stopping server waits for others for a limited time only.
func (e *Engine) step(event replica.Event) {
	if _, stop := event.(replica.Stop); stop {
		e.stopAt = time.Now().Add(handOverWithin)
	}
	e.node.Step(event)
}

// lookAround does what is due once in a while: metrics each tick, the rest each second.
func (e *Engine) lookAround() {
	e.watch.node(e.node.Statistics())
	e.paceProof()
	if e.tick++; e.tick%10 != 0 {
		return
	}
	e.paceSums()
	e.tellHealth(e.disk.Full())
	e.makeRoom()
	// A leader without room would refuse everything new, although others could take it.
	if e.node.Serving() && e.disk.Full() && time.Since(e.gaveAt) > roomEvery {
		e.gaveAt = time.Now()
		e.leaveToRoomier()
	}
}

// makeRoom lets go what nobody needs any more, where room is short on a disk: old history, by the log
// of the cluster, and on this server what only its newest snapshot has.
func (e *Engine) makeRoom() {
	if e.disk.Full() {
		e.node.SnapshotEarly()
	}
	if e.node.Serving() && (e.disk.Full() || e.network.anyFull()) {
		e.node.Forget()
	}
}

// tellHealth tells the other servers how this one is doing: they choose the next leader by it,
// and give a vote only to a server that has all large values.
func (e *Engine) tellHealth(lowRoom bool) {
	e.network.tellHealth(health{applied: e.node.Applied(), lowRoom: lowRoom, lacks: e.fetcher.lacks()})
}

// leaveToRoomier gives the lead to a server that has room on its disk, if there is one.
func (e *Engine) leaveToRoomier() {
	healths := e.network.healths()
	for _, id := range e.node.Roster().Voters() {
		if h, ok := healths[id]; ok && id != e.id && !h.lowRoom && e.node.Reachable(id) {
			e.log.Warn("the data disk is nearly full: handing leadership to a server that has room", "to",
				e.network.nameOf(id))
			e.node.Step(replica.Transfer{To: id})
			return
		}
	}
}

// ended reports whether the loop is over.
func (e *Engine) ended() bool {
	if err := e.node.Failure(); err != nil {
		e.log.Error("the server stops: it cannot continue", "err", err)
		e.expelled = e.node.Expelled()
		if e.failure = err; errors.Is(err, replica.ErrNoRoom) {
			e.tellHealth(true) // the others remember what it died of
		}
		close(e.failed)
		return true
	}
	// A snapshot in flight is given up: the log holds everything that is in it.
	return e.node.Stopped() && (e.node.Idle() || time.Now().After(e.stopAt))
}

// show publishes who leads. Waiters hold the old view's channel, so the new view is stored
// before that channel is closed: a caller that wakes up finds the new one.
func (e *Engine) show() {
	old, leader, serving := e.view.Load(), e.node.Leader(), e.node.Serving()
	if old.leader == leader && old.serving == serving {
		return
	}
	e.view.Store(&view{leader: leader, serving: serving, changed: make(chan struct{})})
	close(old.changed)
}

// finish answers everybody that still waits. stopped is closed under the lock that enqueue
// takes, so no call can slip in behind take and wait for ever.
func (e *Engine) finish() {
	e.mu.Lock()
	close(e.stopped)
	e.mu.Unlock()
	e.turn.Lock()
	defer e.turn.Unlock()
	calls, reads := e.take()
	for _, c := range calls {
		c.Answer(core.Answer{}, errStopping)
	}
	for _, r := range reads {
		r.Done(errStopping)
	}
	e.node.Abandon()
	e.feed.Close()
}

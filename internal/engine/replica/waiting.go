package replica

import (
	"slices"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// Commands that no leader has got yet wait for one, so that an election is a pause to their
// callers and not an error. What a leader may have got does not wait: only its caller may
// decide to send it again.

// LeaderTicks is how many ticks callers wait for a leader: enough for an election that has to
// be repeated.
const LeaderTicks = 30

// accept takes commands of this node's own callers.
func (n *Node) accept(calls []Call) {
	if n.stopped {
		n.refuse(Commands(calls),
			engine.Unavailable("the server is stopping: try another one, or this one in a moment"))
		return
	}
	if n.lead.serving {
		n.inbox = append(n.inbox, calls...)
		return
	}
	n.wait(calls)
	n.handOn()
}

// wait keeps calls until there is a leader.
func (n *Node) wait(calls []Call) {
	for _, c := range calls {
		// A call that has waited before keeps its first deadline, or it could wait for ever.
		if c.until == 0 {
			c.until = n.ticks + LeaderTicks
		}
		n.waiting = append(n.waiting, c)
	}
}

// handOn gives what waits to the leader.
func (n *Node) handOn() {
	calls, leader := n.waiting, n.lead.known
	switch {
	case len(calls) == 0, n.Unproven():
	case n.lead.serving:
		n.waiting = nil
		n.inbox = append(n.inbox, calls...)
	case leader != 0 && leader != n.id:
		n.waiting = nil // a transport may say at once that it could not send them
		n.passOn(leader, calls)
	}
}

// waitAgain lets commands that were not proposed wait for the next leader. What another node
// passed on goes back to it, since that node may know the leader by then.
func (n *Node) waitAgain() {
	calls := n.inbox
	n.inbox = nil
	for _, c := range calls {
		if c.from == 0 && !c.alone && !n.stopped {
			n.wait([]Call{c})
		} else {
			c.Answer(core.Answer{}, engine.Unavailable("this server no longer leads: try again"))
		}
	}
	n.askAgain()
}

// tickWaiting passes on what was given back, and gives up what has waited too long.
func (n *Node) tickWaiting() {
	n.waiting = slices.DeleteFunc(n.waiting, func(c Call) bool {
		if c.until > n.ticks {
			return false
		}
		c.Answer(core.Answer{}, engine.Unavailable(n.unanswered()+": try again in a moment"))
		return true
	})
	n.handOn()
}

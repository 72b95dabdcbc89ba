package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/leasehold/leasehold/internal/engine"
)

// Linearizable reads ask raft whether this node may still speak for the cluster. A
// round has an id of its own, so that an answer to an older question is never taken
// for an answer to this one; and a reader joins only a round that has not begun,
// since one that has may have been asked before the reader came.

// A readyRead may be done when the state has come to an index.
type readyRead struct {
	index uint64
	calls []ReadCall
}

// A round that does not end is asked again, under another id, so many ticks later: on its
// way to the leader and back it can be lost.
const roundTicks = 5

// mayRead tells whether there is somebody to ask.
func (n *Node) mayRead() bool {
	return n.lead.serving || !n.lead.leader && n.lead.known != 0
}

func (n *Node) acceptReads(calls []ReadCall) {
	if n.stopped {
		n.refuse(Reads(calls), engine.Unavailable("the server is stopping: try another one, or this one in a moment"))
		return
	}
	for i := range calls {
		calls[i].until = n.ticks + leaderTicks
	}
	if n.Planted.ReadJoinsRound && len(n.asked) > 0 {
		n.asked = append(n.asked, calls...)
		return
	}
	if n.Planted.ReadByFlag && n.lead.serving {
		n.answered = append(n.answered, readyRead{n.applied, calls})
		n.serveReads()
		return
	}
	n.reads = append(n.reads, calls...)
}

// ask begins a round for the readers that came since the last one.
func (n *Node) ask() {
	if len(n.reads) == 0 || len(n.asked) > 0 || !n.mayRead() {
		return
	}
	n.round++
	n.sinceAsked = 0
	n.asked, n.reads = n.reads, nil
	n.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, n.round))
}

// tickReads asks again, and gives up those who have waited long enough.
func (n *Node) tickReads() {
	over := func(c ReadCall) bool {
		if c.until > n.ticks {
			return false
		}
		c.Done(engine.Unavailable("nobody leads, or it can not be reached: try again in a moment"))
		return true
	}
	n.reads, n.asked = slices.DeleteFunc(n.reads, over), slices.DeleteFunc(n.asked, over)
	for i := range n.answered {
		n.answered[i].calls = slices.DeleteFunc(n.answered[i].calls, over)
	}
	n.answered = slices.DeleteFunc(n.answered, func(r readyRead) bool { return len(r.calls) == 0 })
	if n.sinceAsked++; n.sinceAsked >= roundTicks {
		n.askAgain()
	}
}

// askAgain puts those whose round may be lost into the next one.
func (n *Node) askAgain() {
	n.reads, n.asked = append(n.asked, n.reads...), nil
}

// confirm takes raft's answers to rounds.
func (n *Node) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 || binary.BigEndian.Uint64(s.RequestCtx) != n.round || len(n.asked) == 0 {
			continue
		}
		n.answered = append(n.answered, readyRead{s.Index, n.asked})
		n.asked = nil
	}
}

// serveReads does the reads whose index the state has come to.
func (n *Node) serveReads() {
	for len(n.answered) > 0 && n.answered[0].index <= n.applied {
		view := n.State.View(n.sinceStamp())
		for _, r := range n.answered[0].calls {
			r.Read(view)
			r.Done(nil)
		}
		n.answered = n.answered[1:]
	}
}

// sinceStamp is how long ago the last stamp was, for people to read.
func (n *Node) sinceStamp() time.Duration {
	if n.lead.fixed {
		return time.Duration(n.now() - n.State.Now())
	}
	return n.Clock.Monotonic() - n.lead.received
}

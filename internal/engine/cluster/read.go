package cluster

import (
	"encoding/binary"
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

// A round that does not end is asked again, under another id, so many ticks later and
// so many times: on its way to the leader and back it can be lost.
const (
	roundTicks = 5
	maxRounds  = 6
)

// patience counts how long readers have waited.
type patience struct{ ticks, rounds int }

// mayRead tells whether there is somebody to ask.
func (n *Node) mayRead() bool {
	return n.lead.serving || !n.lead.leader && n.lead.known != 0
}

func (n *Node) acceptReads(calls []ReadCall) {
	if n.stopped || !n.mayRead() {
		n.refuse(Reads(calls), engine.Unavailable("there is no leader yet: try again in a moment"))
		return
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
	n.patience.ticks = 0
	n.asked, n.reads = n.reads, nil
	n.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, n.round))
}

// tickReads asks again, or gives up.
func (n *Node) tickReads() {
	if len(n.asked) == 0 && (len(n.reads) == 0 || n.mayRead()) {
		n.patience = patience{}
		return
	}
	if n.patience.ticks++; n.patience.ticks < roundTicks {
		return
	}
	n.patience.ticks = 0
	if n.patience.rounds++; n.patience.rounds >= maxRounds {
		n.patience = patience{}
		n.dropReads()
		return
	}
	n.reads, n.asked = append(n.asked, n.reads...), nil
}

// confirm takes raft's answers to rounds.
func (n *Node) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 || binary.BigEndian.Uint64(s.RequestCtx) != n.round || len(n.asked) == 0 {
			continue
		}
		n.answered = append(n.answered, readyRead{s.Index, n.asked})
		n.asked, n.patience = nil, patience{}
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

// dropReads tells readers that their round was lost with the lead.
func (n *Node) dropReads() {
	lost := engine.Unavailable("the leader changed: try again")
	n.refuse(Reads(n.reads), lost)
	n.refuse(Reads(n.asked), lost)
	n.reads, n.asked = nil, nil
}

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

func (n *Node) acceptReads(calls []ReadCall) {
	if n.stopped || !n.lead.serving {
		n.refuse(Reads(calls), engine.Unavailable("there is no leader yet: try again in a moment"))
		return
	}
	n.reads = append(n.reads, calls...)
}

// ask begins a round for the readers that came since the last one.
func (n *Node) ask() {
	if len(n.reads) == 0 || len(n.asked) > 0 || !n.lead.serving {
		return
	}
	n.round++
	n.asked, n.reads = n.reads, nil
	n.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, n.round))
}

// confirm takes raft's answers to rounds.
func (n *Node) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 || binary.BigEndian.Uint64(s.RequestCtx) != n.round {
			continue
		}
		n.answered = append(n.answered, readyRead{s.Index, n.asked})
		n.asked = nil
	}
}

// serveReads does the reads whose index the state has come to.
func (n *Node) serveReads() {
	for len(n.answered) > 0 && n.answered[0].index <= n.applied {
		passed := time.Duration(0)
		if n.lead.fixed {
			passed = time.Duration(n.now() - n.State.Now())
		}
		view := n.State.View(passed)
		for _, r := range n.answered[0].calls {
			r.Read(view)
			r.Done(nil)
		}
		n.answered = n.answered[1:]
	}
}

// dropReads tells readers that their round was lost with the lead.
func (n *Node) dropReads() {
	lost := engine.Unavailable("the leader changed: try again")
	n.refuse(Reads(n.reads), lost)
	n.refuse(Reads(n.asked), lost)
	n.reads, n.asked = nil, nil
}

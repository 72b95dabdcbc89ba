package replica

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/leasehold/leasehold/internal/engine"
)

// Linearizable reads ask raft whether this node may still speak for the cluster. A
// round has an id of its own, so that an answer to an older question is never taken
// for an answer to this one; and a reader joins only a round that has not begun,
// since one that has may have been asked before the reader came.
//
// An answer to a round serves the earlier ones too: it was asked after all of their
// readers came. So earlier rounds stay open for as long as their readers wait, and to
// ask again costs nobody the answer that is on its way, however long that takes.

// A readRound is readers whose question is on its way.
type readRound struct {
	id    uint64
	calls []ReadCall
}

// A readyRead may be served once the state has reached an index.
type readyRead struct {
	index uint64
	calls []ReadCall
}

const (
	// roundTicks is the number of ticks after which the question is asked again, under another
	// id: it can be lost on its way to the leader and back.
	roundTicks = 5
	// readTicks is how many ticks a reader waits for a leader that is known. A question
	// crosses the network four times from a follower, and may wait for a disk at each end.
	readTicks = 100
)

// mayRead reports whether there is a leader to ask. One that does not serve yet must not
// answer: it may not have applied all that earlier leaders answered.
func (n *Node) mayRead() bool {
	return n.lead.serving || !n.lead.leader && n.lead.known != 0
}

// acceptReads queues readers for the next round.
func (n *Node) acceptReads(calls []ReadCall) {
	if n.stopped {
		n.refuse(Reads(calls), engine.Unavailable("the server is stopping: try another one, or this one in a moment"))
		return
	}
	for i := range calls {
		calls[i].since = n.ticks
	}
	if calls = n.acceptStale(calls); len(calls) == 0 {
		return
	}
	n.reads = append(n.reads, calls...)
}

// acceptStale serves readers to whom it does not matter what other nodes know, behind those who may be served already,
// and returns the rest.
func (n *Node) acceptStale(calls []ReadCall) []ReadCall {
	var stale []ReadCall
	rest := slices.DeleteFunc(calls, func(c ReadCall) bool {
		if c.Stale {
			stale = append(stale, c)
		}
		return c.Stale
	})
	if len(stale) == 0 {
		return rest
	}
	ready := slices.IndexFunc(n.answered, func(r readyRead) bool { return r.index > n.applied })
	if ready < 0 {
		ready = len(n.answered)
	}
	n.answered = slices.Insert(n.answered, ready, readyRead{calls: stale})
	n.serveReads()
	return rest
}

// ask begins a round for the readers that came since the last one, or asks again for those
// who may wait for an answer that was lost.
func (n *Node) ask() {
	open := len(n.rounds) > 0
	switch {
	case !n.mayRead(), len(n.reads) == 0 && !open:
		return
	case len(n.reads) > 0 && open && n.sinceAsked == 0:
		return // while answers are on their way, one round a tick is enough
	case len(n.reads) == 0 && n.sinceAsked < roundTicks:
		return
	}
	n.round++
	n.sinceAsked = 0
	if len(n.reads) > 0 {
		n.rounds = append(n.rounds, readRound{n.round, n.reads})
		n.reads = nil
	}
	// Round ids start from a nonce, so they differ between processes as well as within one.
	n.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, n.round))
}

// tickReads fails readers that have waited long enough. While no leader is known they get less
// time: nothing is on its way for them.
func (n *Node) tickReads() {
	n.sinceAsked++
	limit := uint64(LeaderTicks)
	if n.mayRead() {
		limit = readTicks
	}
	over := func(c ReadCall) bool {
		if n.ticks-c.since < limit {
			return false
		}
		c.Done(engine.Unavailable(n.unanswered() + ": try again in a moment"))
		return true
	}
	n.reads = slices.DeleteFunc(n.reads, over)
	for i := range n.rounds {
		n.rounds[i].calls = slices.DeleteFunc(n.rounds[i].calls, over)
	}
	n.rounds = slices.DeleteFunc(n.rounds, func(r readRound) bool { return len(r.calls) == 0 })
	for i := range n.answered {
		n.answered[i].calls = slices.DeleteFunc(n.answered[i].calls, over)
	}
	n.answered = slices.DeleteFunc(n.answered, func(r readyRead) bool { return len(r.calls) == 0 })
}

// unanswered says why callers got no answer, by what this node knows.
func (n *Node) unanswered() string {
	if n.Unproven() {
		return "the state of this server was not compared with that of the others yet"
	}
	switch leader := n.lead.known; leader {
	case 0:
		return "no leader is known"
	case n.id:
		return "this server leads, but a majority of the servers did not answer in time"
	default:
		m, _ := n.roster.Member(leader)
		return fmt.Sprintf("server %s leads, but did not answer in time", cmp.Or(m.Name, fmt.Sprint(leader)))
	}
}

// askAgain asks at the next opportunity: the node that was asked no longer leads.
func (n *Node) askAgain() { n.sinceAsked = roundTicks }

// confirm takes raft's answers to rounds.
func (n *Node) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 {
			continue
		}
		id := binary.BigEndian.Uint64(s.RequestCtx)
		// An earlier process of this node may have asked: its ids are outside the range of this
		// one's. The differences are unsigned, so that they hold when the counter wraps.
		if asked := id - n.firstRound; asked == 0 || asked > n.round-n.firstRound {
			continue
		}
		var calls []ReadCall
		for len(n.rounds) > 0 && n.rounds[0].id-n.firstRound <= id-n.firstRound {
			calls = append(calls, n.rounds[0].calls...)
			n.rounds = n.rounds[1:]
		}
		if len(calls) > 0 {
			n.answered = append(n.answered, readyRead{s.Index, calls})
		}
	}
}

// How much work is done for readers in one step, in the core's units, and what a read costs
// beside that. Commands wait meanwhile, and a renewal must not wait long.
const (
	maxReadsWork = 3072
	readCost     = 2
)

// serveReads serves reads whose index the state has reached. Those that are left when it has
// done enough are served at the next wake-up, which NextWake asks for at once.
func (n *Node) serveReads() {
	if !n.readable() {
		return // as mostly: to read the clock is a system call
	}
	passed := n.sinceStamp()
	for done := 0; done < maxReadsWork && n.readable(); {
		first := &n.answered[0]
		call := first.calls[0]
		if first.calls = first.calls[1:]; len(first.calls) == 0 {
			n.answered = n.answered[1:]
		}
		view := n.state.View(passed)
		call.Read(view)
		call.Done(nil)
		done += readCost + view.Work()
	}
}

// readable reports whether there are reads whose index the state has reached.
func (n *Node) readable() bool {
	return len(n.answered) > 0 && n.answered[0].index <= n.applied && !n.Unproven()
}

// sinceStamp is how long ago the last stamp was. It is for display only ("remaining" in a
// read): no decision depends on it.
func (n *Node) sinceStamp() time.Duration {
	if n.lead.fixed {
		return time.Duration(n.now() - n.state.Now())
	}
	return n.clock.Monotonic() - n.lead.received
}

package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
)

// Raft hands out its work as a Ready: entries and a vote to write, messages to send, committed
// entries to apply. This file carries a Ready out. The order is the safety argument: what a
// node tells others that it has, or whom it voted for, must be on its disk first, since a crash
// would otherwise make it deny its own word.

// turn lets raft go on until it waits for the disk or has nothing left to do.
func (n *Node) turn() {
	for n.failure == nil && !n.writing {
		// Only when nothing is between raft and its log: what raft is given below comes back
		// from Ready at once, with a place in the log. If a snapshot's mark were written in
		// between, the lead could be lost meanwhile, and a batch without a place would be
		// reported as refused although it was kept.
		if n.mark() {
			return
		}
		n.campaignAlone()
		n.change()
		n.seal()
		n.ask()
		if !n.raft.HasReady() {
			return
		}
		ready := n.raft.Ready()
		n.ready = &ready
		n.handle(&ready)
	}
}

// handle carries out one Ready in the order that raft asks for: durable first,
// then known to others.
func (n *Node) handle(r *raft.Ready) {
	if r.HardState != nil {
		n.hard = r.HardState
	}
	early := n.mayBeBehind() // before what is committed makes them fewer
	n.place(r.Entries)
	n.follow(r.SoftState)
	n.confirm(r.ReadStates)
	// Entries that are durable here already need not wait for the write that this Ready asks
	// for.
	if n.durable(r) {
		n.apply(r.CommittedEntries)
		n.serveReads()
		r.CommittedEntries = nil
	}
	if n.failure != nil {
		return
	}
	if len(r.Entries) == 0 && !r.MustSync && raft.IsEmptySnap(r.Snapshot) {
		// A commit index alone is not worth a sync: after a restart an election finds it again.
		n.finish(r)
		return
	}
	if n.Leads() && early {
		// A leader may send before its own write is durable, so that all disks work at once:
		// the others count what is on their disks, and the leader counts itself only after
		// Advance. A follower must not: its message says that it has the entries, or whom it
		// voted for.
		n.transport.Send(r.Messages)
		r.Messages = nil
	}
	// Until Written arrives, turn does nothing: the next Ready must not overtake this one.
	n.writing = true
	n.disk.Write(Write{Hard: n.hard, Entries: r.Entries, Snapshot: markOf(r.Snapshot)})
}

// mayBeBehind reports whether a leader may have less on its disk than the others. One of two
// may not: if the other is being removed and knows it already, nobody could be elected again.
// The one that stays needs the other's vote until it learns that it does not, and gets that
// vote only if its log is as long.
func (n *Node) mayBeBehind() bool { return len(n.members.GetVoters()) > 2 }

// durable reports whether what a Ready says is committed is on this node's disk already.
func (n *Node) durable(r *raft.Ready) bool {
	if len(r.CommittedEntries) == 0 {
		return true
	}
	last := r.CommittedEntries[len(r.CommittedEntries)-1].GetIndex()
	// Entries that are about to be written may replace some that are on disk, so an index at or
	// above the first of them says nothing.
	return last <= n.persisted && (len(r.Entries) == 0 || last < r.Entries[0].GetIndex())
}

// written goes on once the write in flight is durable. A write that failed is the end: nobody
// can tell how much of it reached the disk, and a second sync may report success although the
// kernel has dropped the pages of the first.
func (n *Node) written(err error) {
	n.writing = false
	if err != nil {
		n.fail(fmt.Errorf("the log cannot be written: %w%s", err, wayOut(err)))
		return
	}
	if n.marking != nil {
		n.marked()
		return
	}
	r := n.ready
	if !raft.IsEmptySnap(r.Snapshot) {
		if err := n.install(r.Snapshot); err != nil {
			n.fail(err)
			return
		}
	}
	if err := n.storage.Append(r.Entries); err != nil {
		n.fail(err)
		return
	}
	if len(r.Entries) > 0 {
		n.persisted = r.Entries[len(r.Entries)-1].GetIndex()
	}
	n.finish(r)
}

// finish ends a Ready whose writes are durable: only now may others hear of them.
func (n *Node) finish(r *raft.Ready) {
	if err := n.storage.SetHardState(n.hard); err != nil {
		n.fail(err)
		return
	}
	n.transport.Send(r.Messages)
	n.apply(r.CommittedEntries)
	if n.failure == nil {
		n.raft.Advance(*r)
		n.ready = nil
		n.serveReads()
	}
}

// wayOut ends the message about a log that cannot be written.
func wayOut(err error) string {
	if errors.Is(err, ErrNoRoom) {
		return ": make room on the disk and start the server again; nothing that was answered is lost"
	}
	return ""
}

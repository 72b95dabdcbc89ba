package cluster

import (
	"fmt"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// snapshotting is the snapshot in flight.
type snapshotting struct {
	taken *Snapshot // being saved
	saved *Snapshot // durable; the log has to be told
	since int64     // bytes of log applied when it was frozen
	size  int64     // of the newest one, in bytes
}

// freeze takes a snapshot when the log has grown by enough. Taking it costs
// nothing: the tree is shared, and encoded in the background. A large state waits
// for a larger log, so that writing it costs at most as much again.
func (n *Node) freeze() {
	if n.snapshot.taken != nil || n.snapshot.saved != nil || n.failure != nil {
		return
	}
	if n.logBytes < max(n.SnapshotEvery, n.snapshot.size/2) {
		return
	}
	s := Snapshot{Index: n.applied, Term: n.term, Members: n.members, State: n.State.Freeze()}
	n.snapshot.taken, n.snapshot.since = &s, n.logBytes
	n.Disk.Save(s)
	if n.Planted.MarkBeforeSave {
		n.snapshot.saved = &s
	}
}

// saved notes that a snapshot is durable. Recovery must not know of it before.
func (n *Node) saved(e Saved) {
	if e.Err != nil {
		n.fail(fmt.Errorf("a snapshot can not be written: %w", e.Err))
		return
	}
	if n.Planted.MarkBeforeSave {
		n.snapshot.taken = nil
		return
	}
	n.snapshot.saved, n.snapshot.taken = n.snapshot.taken, nil
	n.snapshot.saved.State = nil // let the frozen tree go
	n.snapshot.size = e.Bytes
}

// mark tells the log that recovery may start from the saved snapshot.
func (n *Node) mark() {
	s := n.snapshot.saved
	if s == nil {
		return
	}
	n.marking, n.writing = s, true
	n.Disk.Write(Write{Snapshot: &walpb.Snapshot{Index: &s.Index, Term: &s.Term, ConfState: s.Members}})
}

// marked lets go of the log that the snapshot replaces.
func (n *Node) marked() {
	s := n.marking
	n.marking, n.snapshot.saved = nil, nil
	n.logBytes -= n.snapshot.since
	n.statistics.Snapshots++
	if _, err := n.Storage.CreateSnapshot(s.Index, s.Members, nil); err != nil {
		n.fail(err)
		return
	}
	if err := n.Storage.Compact(s.Index); err != nil {
		n.fail(err)
	}
}

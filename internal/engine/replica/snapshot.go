package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// snapshotAgain is the number of ticks after which a snapshot that found no room is tried
// again.
const snapshotAgain = 10

// snapshotting is the snapshot in flight. It goes through three steps: frozen (taken), a
// durable file (saved), and marked in the log as a start of recovery. The log that it replaces
// may go only after the third: a crash before it recovers from the older snapshot, and needs
// all of that log.
type snapshotting struct {
	taken *Snapshot // being saved
	saved *Snapshot // durable; the log has to be told
	since int64     // bytes of log applied when it was frozen
	size  int64     // of the newest one, in bytes

	forgot int // bytes of history that went since it was frozen

	previous uint64 // index of the newest one that the log knows
	again    uint64 // tick at which to try again, after there was no room; 0: there was
}

// An arrival is a snapshot that another node sent.
type arrival struct {
	term   uint64
	state  *core.State
	roster *Roster
	at     time.Duration // by this node's clock
}

// SnapshotAfter is how many bytes of log are written before the next snapshot. A large state
// waits for a larger log, so that writing snapshots costs a bounded multiple of writing the
// log.
func SnapshotAfter(every, size int64) int64 { return max(every, size/2) }

// freeze takes a snapshot when the log has grown enough. Freezing costs next to nothing: the
// tree is shared with the live state, copied on write, and encoded in the background.
func (n *Node) freeze() {
	if n.snapshot.taken != nil || n.snapshot.saved != nil || n.failure != nil || n.ticks < n.snapshot.again {
		return
	}
	if n.logBytes < SnapshotAfter(n.config.SnapshotEvery, n.snapshot.size) {
		return
	}
	s := Snapshot{Index: n.applied, Term: n.term, Members: n.members, Roster: n.roster, State: n.state.Freeze()}
	n.snapshot.taken, n.snapshot.since, n.snapshot.forgot = &s, n.logBytes, 0
	n.disk.Save(s)
}

// SnapshotNext makes the next entry be followed by a snapshot, however short the log is.
func (n *Node) SnapshotNext() { n.logBytes = 1 << 50 }

// earlyBytes is how much of the log, or of history that went, is worth a snapshot while room is short.
const earlyBytes = 1 << 20

// SnapshotEarly takes a snapshot although the log is short, if it is likely to be smaller than the newest: what was
// deleted or forgotten since gives back its room only then. It is for a disk that is short of room.
func (n *Node) SnapshotEarly() {
	if n.snapshot.taken != nil || n.snapshot.saved != nil {
		return
	}
	if n.snapshot.forgot >= earlyBytes || n.logBytes >= max(earlyBytes, n.snapshot.size/4) {
		n.SnapshotNext()
		n.freeze()
	}
}

// forgets notes how much history an entry dropped. Those who watch have to hear of it, as no event tells them.
func (n *Node) forgets(before int) {
	if gone := before - n.state.HistoryBytes(); gone > 0 {
		n.snapshot.forgot += gone
		if !n.Unproven() {
			n.feed.PublishAll(n.state.View(0))
		}
	}
}

// freezeAgain retries a snapshot that found no room. It must not wait for the next entry: none
// may be accepted before there is room.
func (n *Node) freezeAgain() {
	if n.snapshot.again != 0 && n.ticks >= n.snapshot.again {
		n.freeze()
	}
}

// saved notes that a snapshot is durable; the log must not name it earlier. If there was no
// room for it the node goes on: the log only gets longer, nothing is lost, and somebody may
// make room.
func (n *Node) saved(e Saved) {
	if errors.Is(e.Err, ErrNoRoom) {
		n.log.Warn("a snapshot found no room and will be tried again", "err", e.Err)
		n.snapshot.taken, n.snapshot.again = nil, n.ticks+snapshotAgain
		return
	}
	n.snapshot.again = 0
	if e.Err != nil {
		n.fail(fmt.Errorf("a snapshot cannot be written: %w", e.Err))
		return
	}
	taken := n.snapshot.taken
	if n.snapshot.taken = nil; taken.Index <= n.snapshot.previous {
		return // another node's snapshot has overtaken it
	}
	n.snapshot.saved = taken
	n.snapshot.saved.State = nil // let the frozen tree go
	n.snapshot.size = e.Bytes
}

// mark writes to the log that recovery may start from the saved snapshot. It reports whether
// there is one.
func (n *Node) mark() bool {
	s := n.snapshot.saved
	if s == nil {
		return false
	}
	n.marking, n.writing = s, true
	n.disk.Write(Write{Snapshot: &walpb.Snapshot{Index: &s.Index, Term: &s.Term, ConfState: s.Members}})
	return true
}

// marked lets go of the log that the snapshot replaces.
func (n *Node) marked() {
	s := n.marking
	n.marking, n.snapshot.saved = nil, nil
	n.logBytes -= n.snapshot.since
	n.statistics.Snapshots++
	if _, err := n.storage.CreateSnapshot(s.Index, s.Members, nil); err != nil {
		n.fail(err)
		return
	}
	n.compact(s.Index)
}

// compact drops the log in memory that a snapshot at an index replaces. With several servers
// one snapshot's worth of log is kept, so that a follower that is a little behind gets entries
// and not a whole state.
func (n *Node) compact(index uint64) {
	if len(n.members.GetVoters()) > 1 {
		index, n.snapshot.previous = n.snapshot.previous, index
	} else {
		n.snapshot.previous = index
	}
	if first, err := n.storage.FirstIndex(); err != nil || index < first {
		return
	}
	if err := n.storage.Compact(index); err != nil {
		n.fail(err)
	}
}

// keepArrival keeps the state that came with a snapshot until raft decides to use it, and
// returns the message to give to raft; nil: it is of no use. Raft itself sees only the
// metadata, never the state.
func (n *Node) keepArrival(e Received) *raftpb.Message {
	meta := e.Message.GetSnapshot().GetMetadata()
	if e.State == nil || e.Roster == nil {
		return nil
	}
	message := e.Message
	if !isIn(meta.GetConfState(), n.id) {
		if n.id < e.Roster.Next {
			return nil // it was removed
		}
		message = withLearner(message, n.id)
	}
	n.dropArrivals()
	n.arrived[meta.GetIndex()] = &arrival{meta.GetTerm(), e.State, e.Roster, n.clock.Monotonic()}
	return message
}

// dropArrivals lets go of states that raft did not use and will not: each is as large as this node's own.
func (n *Node) dropArrivals() {
	maps.DeleteFunc(n.arrived, func(index uint64, _ *arrival) bool { return index <= n.applied })
}

// isIn reports whether raft counts a node as a member.
func isIn(c *raftpb.ConfState, id uint64) bool {
	return slices.Contains(c.GetVoters(), id) || slices.Contains(c.GetLearners(), id)
}

// withLearner returns the message of a snapshot with one more member. A new node may get a
// snapshot that is older than the change which added it, and raft ignores a snapshot that does
// not name the node itself; the change follows in the log.
func withLearner(m *raftpb.Message, id uint64) *raftpb.Message {
	m = proto.Clone(m).(*raftpb.Message)
	conf := m.GetSnapshot().GetMetadata().GetConfState()
	conf.Learners = append(conf.Learners, id)
	return m
}

// markOf is what the log is told of a snapshot.
func markOf(s *raftpb.Snapshot) *walpb.Snapshot {
	if raft.IsEmptySnap(s) {
		return nil
	}
	meta := s.GetMetadata()
	return &walpb.Snapshot{Index: new(meta.GetIndex()), Term: new(meta.GetTerm()), ConfState: meta.GetConfState()}
}

// install continues from another node's snapshot, which is marked in the log by now.
func (n *Node) install(s *raftpb.Snapshot) error {
	meta := s.GetMetadata()
	index := meta.GetIndex()
	a := n.arrived[index]
	if a == nil || a.term != meta.GetTerm() {
		return fmt.Errorf("the state of the snapshot at %d did not come with it", index)
	}
	if err := n.storage.ApplySnapshot(s); err != nil {
		return err
	}
	n.state, n.applied, n.term, n.members, n.persisted = a.state, index, a.term, meta.GetConfState(), index
	n.tellLevel()
	n.lead.received = a.at
	n.logBytes, n.snapshot.previous, n.snapshot.saved = 0, index, nil
	maps.DeleteFunc(n.arrived, func(i uint64, _ *arrival) bool { return i <= index })
	maps.DeleteFunc(n.lead.arrivals, func(i uint64, _ time.Duration) bool { return i <= index })
	n.overtaken(index)
	n.superseded(a.term)
	if n.beginProof(index); n.Unproven() {
		// What is answered from the log would be answered from this state.
		n.dropRelays(engine.Undecided("this server got its state anew: ask again with the same id"))
	} else {
		n.feed.PublishAll(n.state.View(0))
	}
	n.statistics.Installed++
	if a.roster != nil {
		n.adopt(a.roster)
	}
	return nil
}

// overtaken answers callers whose commands lie in the part of the log that a snapshot replaced.
// Whether they were applied there, and with what result, cannot be known from the state alone.
func (n *Node) overtaken(index uint64) {
	undecided := engine.Undecided("this server was too far behind to see what became of it: ask again with the same id")
	for _, i := range slices.Sorted(maps.Keys(n.proposed)) {
		if i <= index {
			n.proposed[i].done(undecided)
			delete(n.proposed, i)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(n.relays.placed)) {
		if i <= index {
			n.settleRelays(i, 0, nil, undecided)
		}
	}
}

// snapshotSent tells raft whether to go on with another node.
func (n *Node) snapshotSent(e SnapshotSent) {
	status := raft.SnapshotFinish
	if e.Err != nil {
		status = raft.SnapshotFailure
	}
	n.raft.ReportSnapshot(e.To, status)
}

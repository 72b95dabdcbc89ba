package cluster

import (
	"context"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// snapshotPause is how long a server waits before it sends a snapshot again that did not
// arrive. Raft would ask for it again at once, without end.
const snapshotPause = time.Second

// transport is the Transport of a real node, on the mesh. The node's own goroutine calls it, so
// nothing here may block.
type transport struct {
	*network
	// later are events that the node gets when its step is over.
	later []replica.Event
}

// Send carries raft's messages.
func (t *transport) Send(messages []*raftpb.Message) {
	lost := map[uint64]bool{}
	for _, m := range messages {
		to := m.GetTo()
		if m.GetType() == raftpb.MsgSnap {
			t.sendSnapshot(m)
			continue
		}
		body, err := proto.Marshal(m)
		if err != nil {
			t.log.Error("a message could not be encoded", "err", err)
			continue
		}
		send := t.mesh.Send
		if urgent(m) {
			send = t.mesh.SendUrgent
		}
		if !send(to, messageRaft, body) && !lost[to] {
			lost[to] = true
			t.later = append(t.later, replica.Unreachable{ID: to})
		}
	}
}

// urgent reports whether a message keeps the lead where it is, or says where it is. Such a
// message must not wait behind entries on a slow link: an election timeout would depose a
// healthy leader. Raft's own rules allow it to overtake them.
func urgent(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgReadIndex, raftpb.MsgReadIndexResp,
		raftpb.MsgTimeoutNow,
		raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp:
		return true
	}
	return false
}

// Relay carries commands to the leader, and returns those that certainly were not sent.
func (t *transport) Relay(to uint64, r replica.Relay) (unsent []uint64) {
	for _, part := range splitRelay(r) {
		if t.mesh.Send(to, messageRelay, appendRelay(nil, part)) {
			continue
		}
		for i := range part.Commands {
			unsent = append(unsent, part.First+uint64(i))
		}
	}
	return unsent
}

// splitRelay cuts a relay into messages that are not too long.
func splitRelay(r replica.Relay) (parts []replica.Relay) {
	start, size := 0, 0
	for i, c := range r.Commands {
		if size += len(c); size > maxRelayBytes && i > start {
			parts = append(parts, replica.Relay{First: r.First + uint64(start), Commands: r.Commands[start:i]})
			start, size = i, len(c)
		}
	}
	return append(parts, replica.Relay{First: r.First + uint64(start), Commands: r.Commands[start:]})
}

// Place carries back where commands are. A server that does not hear of it gives up by itself
// after a while.
func (t *transport) Place(to uint64, places []replica.Placement) {
	t.mesh.Send(to, messagePlaces, appendPlaces(nil, places))
}

// take returns the events that came up in the node's last step.
func (t *transport) take() []replica.Event {
	later := t.later
	t.later = nil
	return later
}

// sendSnapshot sends a state file in the background, and gives the node an event when that is over.
func (t *transport) sendSnapshot(m *raftpb.Message) {
	t.workers.Go(func() {
		start := time.Now()
		meta := m.GetSnapshot().GetMetadata()
		err := t.streamSnapshot(m)
		if err != nil {
			t.log.Warn("a snapshot could not be sent to another server", "server", t.nameOf(m.GetTo()), "index",
				meta.GetIndex(), "err", err)
			t.sleep(snapshotPause)
		} else {
			t.log.Info("a snapshot was sent to another server", "server", t.nameOf(m.GetTo()), "index", meta.GetIndex(),
				"took", time.Since(start))
		}
		t.post(replica.SnapshotSent{To: m.GetTo(), Err: err})
	})
}

// streamSnapshot sends the file as it is on disk: it was checked when it was written.
func (t *transport) streamSnapshot(m *raftpb.Message) error {
	head, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	f, err := t.dir.OpenState(m.GetSnapshot().GetMetadata().GetIndex())
	if err != nil {
		return err
	}
	defer f.Close()
	return t.mesh.Stream(t.ctx, m.GetTo(), streamSnapshot, head, f)
}

// sleep waits, unless the server stops.
func (n *network) sleep(d time.Duration) { pause(n.ctx, d) }

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

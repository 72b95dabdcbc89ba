package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// A network carries what is sent, or loses it. Servers and clients see nothing of why.
type network struct {
	world *World
	deaf  time.Duration     // until when answers to clients are lost, mostly
	slow  time.Duration     // until when some messages between servers take seconds
	cut   map[[2]uint64]int // from one server to another nothing gets through, and for how many reasons
}

// loses reports whether an answer to a client is lost.
func (n *network) loses() bool {
	w := n.world
	return !w.quiet && (n.deaf > w.now && w.chance(70) || w.random.IntN(200) == 0)
}

func (n *network) heal() { n.deaf, n.slow, n.cut = 0, 0, nil }

// cuts stops what goes from one server to another, for a while. The other direction stays open:
// a leader that is heard and hears nobody is harder to survive than one that is gone.
func (n *network) cuts(from, to uint64, d time.Duration) {
	if n.cut == nil {
		n.cut = map[[2]uint64]int{}
	}
	link := [2]uint64{from, to}
	n.cut[link]++
	n.world.after(d, func() {
		if n.cut != nil && n.cut[link] > 0 {
			n.cut[link]--
		}
	})
}

// isolate cuts a server off from all others.
func (n *network) isolate(id uint64, d time.Duration) {
	for _, s := range n.world.servers {
		if s.id != id {
			n.cuts(id, s.id, d)
			n.cuts(s.id, id, d)
		}
	}
}

// latency is how long a message between servers takes, and false if it is lost.
func (n *network) latency(from, to uint64) (time.Duration, bool) {
	w := n.world
	switch {
	case n.cut[[2]uint64{from, to}] > 0, !w.quiet && w.random.IntN(1000) < w.Faults.LossPerMille:
		return 0, false
	case n.slow > w.now && w.chance(30):
		return w.upTo(6 * time.Second), true
	}
	return w.between(200*time.Microsecond, w.Faults.Latency), true
}

// carry brings something from one server to another, if it gets there.
func (n *network) carry(from *server, to uint64, arrive func(*server)) {
	n.carryOr(from, to, arrive, func() {})
}

// carryOr is carry for a sender that learns of the loss. As on real connections, each side asks
// who the other is, and takes nothing from one that is not who it says.
func (n *network) carryOr(from *server, to uint64, arrive func(*server), lost func()) {
	took, ok := n.latency(from.id, to)
	s := n.world.byID[to]
	if !ok || s == nil {
		lost()
		return
	}
	life, dir, disk, theirs := from.life, from.disk.dir, s.disk, s.life
	n.world.after(took, func() {
		// No connection outlasts the machine that it leads to; and one that is made to the
		// next process there, who is who is asked again, by a sender that still lives.
		if s.gone || s.disk != disk || s.life != theirs && from.life != life || n.cut[[2]uint64{from.id, to}] > 0 {
			lost()
			return
		}
		if s.node != nil && s.node.Admit(from.id, dir) != nil {
			lost()
			n.turnAway(s, from, life)
			return
		}
		if from.node != nil && from.life == life && from.node.Admit(s.id, s.disk.dir) != nil {
			lost()
			n.turnAway(from, s, s.life)
			return
		}
		arrive(s)
	})
}

// turnAway tells a server why it is not let in.
func (n *network) turnAway(by, from *server, life int) {
	removed := slices.Contains(by.node.Roster().Removed, from.id)
	took, ok := n.latency(by.id, from.id)
	if !ok {
		return
	}
	n.world.after(took, func() {
		switch {
		case from.life != life || from.node == nil:
		case removed:
			from.deliver(edge, replica.Expelled{})
		default:
			n.world.tell("server %d is told that it lost its data", from.id)
			from.barred = true
			from.end()
		}
	})
}

// A transport is one server's end of the network.
type transport struct {
	server *server
	life   int
}

func (t *transport) network() *network { return &t.server.world.network }
func (t *transport) source() string    { return fmt.Sprint("server ", t.server.id) }

// Send carries raft's messages. They can be lost, late, out of order, and come twice.
func (t *transport) Send(ms []*raftpb.Message) {
	w := t.server.world
	for _, m := range ms {
		if m.GetType() == raftpb.MsgSnap {
			t.sendState(m)
			continue
		}
		if m.GetType() == raftpb.MsgVoteResp && !m.GetReject() {
			w.truth.voted(t.server, m.GetTerm(), m.GetTo())
			if !w.quiet && w.chance(w.Faults.KillVoter) {
				w.after(time.Microsecond, func() { t.server.kill(w.upTo(20*time.Millisecond), false) })
			}
		}
		times := 1
		if !w.quiet && w.random.IntN(1000) < w.Faults.RepeatPerMille {
			times = 2
		}
		for range times {
			copied := proto.Clone(m).(*raftpb.Message)
			t.network().carry(t.server, m.GetTo(),
				func(s *server) { s.deliver(t.source(), replica.Received{Message: copied}) })
		}
	}
}

// sendState carries a snapshot with its state file, which the other server makes durable before
// its node hears of it: a mark in the log without its file would leave a server that cannot
// start.
func (t *transport) sendState(m *raftpb.Message) {
	w, from, to := t.server.world, t.server, m.GetTo()
	index := m.GetSnapshot().GetMetadata().GetIndex()
	file := from.disk.files[index]
	file.state = slices.Clone(file.state)
	copied := proto.Clone(m).(*raftpb.Message)
	report := func(err error) {
		w.after(w.between(time.Millisecond, 500*time.Millisecond), func() {
			if from.life == t.life {
				from.deliver(edge, replica.SnapshotSent{To: to, Err: err})
			}
		})
	}
	if file.state == nil {
		report(errors.New("the state file is gone"))
		return
	}
	t.network().carryOr(from, to, func(s *server) {
		if s.node == nil {
			report(errors.New("nobody is there"))
			return
		}
		state, err := s.receiveState(index, file)
		if err != nil {
			w.violated("a state file cannot be read: %v", err)
			return
		}
		w.count("states sent")
		s.deliver(t.source(), replica.Received{Message: copied, State: state, Roster: file.roster})
		report(nil)
	}, func() { report(errors.New("it was lost")) })
}

// receiveState keeps a state file that another server sent.
func (s *server) receiveState(index uint64, file file) (*core.State, error) {
	state, summary, err := wire.ReadSnapshotUpTo(s.levels.Newest, bytes.NewReader(file.state))
	if err != nil {
		return nil, err
	}
	s.disk.files[index] = file
	s.world.truth.hashed(s, index, summary.Checksum)
	s.world.truth.rostered(s, index, file.roster)
	return state, nil
}

// Relay carries commands to the leader, at most once: whether they arrive nobody can tell, so
// they are not sent again.
func (t *transport) Relay(to uint64, r replica.Relay) (unsent []uint64) {
	from := t.server.id
	t.server.world.count("relays")
	t.network().carry(t.server, to, func(s *server) { s.deliver(t.source(), replica.Relayed{From: from, Relay: r}) })
	return nil // whether it arrives, nobody can tell
}

// Place carries back the positions in the log that relayed commands got.
func (t *transport) Place(to uint64, places []replica.Placement) {
	t.network().carry(t.server, to, func(s *server) { s.deliver(t.source(), replica.Placed(places)) })
}

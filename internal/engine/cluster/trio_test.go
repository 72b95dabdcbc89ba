package cluster

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// A trio is three nodes on a network that carries everything at once and in order, as
// long as it is not told otherwise.
type trio struct {
	t       *testing.T
	members []*member
	mono    time.Duration
	queue   []func()
	cut     func(from, to uint64) bool // nil: nothing is
}

// A member is one of three nodes, with its disk and its end of the network.
type member struct {
	*trio
	id      uint64
	node    *Node
	hanging bool // its writes do not return
	pending []Write
	states  map[uint64][]byte
}

func (m *member) Monotonic() time.Duration { return m.mono }
func (m *member) Wall() time.Time          { return time.Unix(1, 0) }
func (m *member) Boot() string             { return "boot" }

func (m *member) Write(w Write) {
	if m.hanging {
		m.pending = append(m.pending, w)
		return
	}
	m.queue = append(m.queue, func() { m.node.Step(Written{}) })
}

func (m *member) Save(s Snapshot) {
	var b bytes.Buffer
	if _, err := wire.WriteSnapshot(&b, s.State); err != nil {
		m.t.Error(err)
	}
	m.states[s.Index] = b.Bytes()
	m.queue = append(m.queue, func() { m.node.Step(Saved{Bytes: 1}) })
}

func (m *member) carry(to uint64, e Event) {
	if m.cut == nil || !m.cut(m.id, to) {
		m.queue = append(m.queue, func() { m.members[to-1].node.Step(e) })
	}
}

func (m *member) Send(ms []*raftpb.Message) {
	for _, x := range ms {
		e := Received{Message: x}
		if x.GetType() == raftpb.MsgSnap {
			e.State, _, _ = wire.ReadSnapshot(bytes.NewReader(m.states[x.GetSnapshot().GetMetadata().GetIndex()]))
			to := x.GetTo()
			m.queue = append(m.queue, func() { m.node.Step(SnapshotSent{To: to}) })
		}
		m.carry(x.GetTo(), e)
	}
}

func (m *member) Relay(to uint64, r Relay)       { m.carry(to, Relayed{m.id, r}) }
func (m *member) Place(to uint64, p []Placement) { m.carry(to, Placed(p)) }

// newTrio returns three nodes of which the first leads.
func newTrio(t *testing.T) *trio {
	x := &trio{t: t, mono: time.Hour}
	for id := uint64(1); id <= 3; id++ {
		m := &member{trio: x, id: id, states: map[uint64][]byte{}}
		node, err := NewNode(NodeConfig{
			ID: id, Storage: raft.NewMemoryStorage(), State: core.New(), Begin: []Member{{ID: 1}, {ID: 2}, {ID: 3}}, Nonce: id * 1000,
			Clock: m, Disk: m, Transport: m, Feed: engine.NewFeed(), Log: slog.New(slog.DiscardHandler), SnapshotEvery: 1 << 40,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.node = node
		x.members = append(x.members, m)
	}
	for _, m := range x.members {
		m.node.Step(Stop{}) // sets it going without a tick, which would be an event of time
		m.node.stopped = false
	}
	x.run()
	if err := x.members[0].node.raft.Campaign(); err != nil {
		t.Fatal(err)
	}
	x.members[0].node.turn()
	x.run()
	if !x.members[0].node.lead.serving {
		t.Fatal("the first does not lead")
	}
	return x
}

// run lets everything happen that is on its way.
func (x *trio) run() {
	for len(x.queue) > 0 {
		next := x.queue[0]
		x.queue = x.queue[1:]
		next()
	}
}

// ticks lets time pass.
func (x *trio) ticks(n int) {
	for range n {
		x.mono += TickEvery
		for _, m := range x.members {
			m.node.Step(RaftTick{})
		}
		x.run()
	}
}

func (m *member) call(c core.Command) *outcome {
	o := &outcome{}
	m.node.Step(Commands{{Bytes: bytesOf(m.t, c), Done: func(a core.Answer, err error) { *o = outcome{true, a, err} }}})
	return o
}

func (m *member) read() (o *outcome) {
	o = &outcome{}
	m.node.Step(Reads{{Read: func(core.View) {}, Done: func(err error) { *o = outcome{told: true, err: err} }}})
	return o
}

func (m *member) holds(path string) int {
	return len(m.node.State.View(0).Status("default", path, 0).Holders)
}

func TestAFollowerPassesCommandsOnAndAnswersFromItsOwnLog(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	o := second.call(lease("r", time.Minute))
	x.run()
	if !o.told || o.err != nil || o.answer.Lease.Token != 1 || second.holds("r") != 1 {
		t.Fatalf("%+v, and the follower has %d", o, second.holds("r"))
	}
	other := lease("r", time.Minute)
	other.ID, other.Holder = "other", "bob"
	o = x.members[2].call(other)
	x.run()
	if !errors.Is(o.err, leasehold.ErrHeld) {
		t.Fatalf("%+v", o)
	}
}

func TestWhatALostLeaderMayHaveGotIsUndecided(t *testing.T) {
	x := newTrio(t)
	x.cut = func(from, to uint64) bool { return from == 1 || to == 1 }
	o := x.members[1].call(lease("r", time.Minute))
	x.ticks(60)
	if !o.told || !errors.Is(o.err, leasehold.ErrUndecided) {
		t.Fatalf("%+v", o)
	}
}

func TestARelayIsNotPassedOnAgain(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	second.node.lead.known = 3 // it has not heard yet who leads
	o := second.call(lease("r", time.Minute))
	x.run()
	if !o.told || !errors.Is(o.err, leasehold.ErrUnavailable) || x.members[0].holds("r") != 0 {
		t.Fatalf("%+v", o)
	}
}

// An entry with a stamp must never come from another node, whatever that one believes.
func TestAStampedEntryOfAnotherNodeIsNotTaken(t *testing.T) {
	x := newTrio(t)
	first := x.members[0]
	data, err := wire.AppendEncoded(nil, wire.Header{Term: first.node.lead.term, Stamp: 1 << 60}, [][]byte{bytesOf(t, lease("r", time.Minute))})
	if err != nil {
		t.Fatal(err)
	}
	first.node.Step(Received{Message: &raftpb.Message{
		Type: raftpb.MsgProp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Entries: []*raftpb.Entry{{Data: data}},
	}})
	x.run()
	if first.holds("r") != 0 || first.node.Failure() != nil {
		t.Fatalf("it happened, at %d", first.node.State.Now())
	}
}

func TestEveryNodeReadsWhatWasAnswered(t *testing.T) {
	x := newTrio(t)
	x.members[0].call(lease("r", time.Minute))
	x.run()
	for _, m := range x.members {
		o := m.read()
		x.run()
		if !o.told || o.err != nil || m.holds("r") != 1 {
			t.Fatalf("node %d: %+v", m.id, o)
		}
	}
}

// A question or its answer can be lost: readers must not wait for ever.
func TestALostRoundIsAskedAgain(t *testing.T) {
	x := newTrio(t)
	x.cut = func(from, to uint64) bool { return from == 2 }
	o := x.members[1].read()
	x.ticks(2)
	x.cut = nil
	x.ticks(roundTicks)
	if !o.told || o.err != nil {
		t.Fatalf("%+v", o)
	}
}

func TestADeposedLeaderReadsNothing(t *testing.T) {
	x := newTrio(t)
	x.cut = func(from, to uint64) bool { return from == 1 || to == 1 }
	o := x.members[0].read()
	x.ticks(40)
	if !o.told || o.err == nil {
		t.Fatalf("%+v", o)
	}
}

// A write that hangs keeps raft's own messages back.
func TestALeaderWhoseDiskHangsGivesTheLeadAway(t *testing.T) {
	x := newTrio(t)
	first := x.members[0]
	first.hanging = true
	first.call(lease("r", time.Minute))
	x.run()
	first.node.Step(Stalled{})
	x.run()
	if !slices.ContainsFunc(x.members[1:], func(m *member) bool { return m.node.lead.serving }) {
		t.Fatal("nobody else leads")
	}
}

// Raft takes no proposal while it hands the lead over; that may come to nothing.
func TestATransferThatFailsDoesNotSpinAndEnds(t *testing.T) {
	x := newTrio(t)
	first := x.members[0]
	first.call(lease("r", time.Second))
	x.run()
	x.cut = func(from, to uint64) bool { return from == 3 || to == 3 }
	first.node.Step(Transfer{To: 3})
	x.mono += 2 * time.Second
	for range 100 {
		after, ok := first.node.NextWake()
		if !ok {
			break
		}
		if after > 0 {
			t.Fatalf("the next wake is in %v", after)
		}
		first.node.Step(Wake{})
	}
	if after, ok := first.node.NextWake(); ok && after == 0 {
		t.Fatal("the pacemaker tries on without a pause")
	}
	x.ticks(electionTicks + 2)
	if first.node.Step(Wake{}); first.node.lead.serving {
		x.run()
		if first.holds("r") != 0 {
			t.Fatal("a lease of a second is held after three")
		}
	}
}

func TestLeadIsProposedAgainIfATransferComesInBetween(t *testing.T) {
	x := newTrio(t)
	x.members[1].node.Step(Transfer{}) // it does not lead: nothing happens
	first := x.members[0]
	x.cut = func(from, to uint64) bool { return from == 3 || to == 3 }
	// As if the transfer had been asked for just before its Lead was proposed.
	first.node.lead.serving, first.node.lead.fixed = false, false
	first.node.raft.TransferLeader(3)
	first.node.takeLead()
	if first.node.lead.fixed {
		t.Fatal("raft took a proposal while it hands the lead over")
	}
	x.ticks(2*electionTicks + 2)
	if !first.node.lead.serving {
		t.Fatal("it leads and never serves")
	}
}

func TestALaggingFollowerGoesOnFromASnapshot(t *testing.T) {
	x := newTrio(t)
	x.cut = func(from, to uint64) bool { return from == 3 || to == 3 }
	for _, m := range x.members[:2] {
		m.node.SnapshotEvery = 1
	}
	for _, path := range []string{"a", "b", "c", "d", "e", "f"} {
		x.members[0].call(lease(path, time.Hour))
		x.run()
	}
	x.cut = nil
	x.ticks(20)
	third := x.members[2].node
	if third.statistics.Installed == 0 || x.members[2].holds("f") != 1 || third.applied != x.members[0].node.applied {
		t.Fatalf("installed %d, at %d of %d", third.statistics.Installed, third.applied, x.members[0].node.applied)
	}
	if err := third.State.Check(); err != nil {
		t.Fatal(err)
	}
	// Time goes on from when the snapshot came, late and never early.
	if behind := x.mono - third.lead.received; behind < 0 || behind > 3*time.Second {
		t.Fatalf("its newest stamp came %v ago", behind)
	}
}

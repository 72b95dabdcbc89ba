package replica

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// A trio is three nodes, or another number, on a network that carries everything at once
// and in order, as long as it is not told otherwise.
type trio struct {
	t       *testing.T
	members []*member // by their ids, from 1 on
	mono    time.Duration
	queue   []func()
	cut     func(from, to uint64) bool // nil: nothing is
}

// A member is one of the nodes, with its disk and its end of the network.
type member struct {
	*trio
	id      uint64
	node    *Node // nil: it is turned off
	hanging bool  // its writes do not return
	pending []Write
	written []Write // durable
	states  map[uint64]Snapshot
	files   map[uint64][]byte
	sums    map[uint64]uint32
	known   Levels // by its program; zero: KnownLevels
}

// levels are those that the member's program knows.
func (m *member) levels() Levels {
	if m.known == (Levels{}) {
		return KnownLevels
	}
	return m.known
}

func (m *member) Monotonic() time.Duration { return m.mono }
func (m *member) Wall() time.Time          { return time.Unix(1, 0) }
func (m *member) Boot() string             { return "boot" }

func (m *member) Write(w Write) {
	if m.hanging {
		m.pending = append(m.pending, w)
		return
	}
	node := m.node
	m.queue = append(m.queue, func() {
		if m.node == node {
			m.written = append(m.written, w)
			node.Step(Written{})
		}
	})
}

func (m *member) Save(s Snapshot) {
	var b bytes.Buffer
	if _, err := wire.WriteSnapshot(&b, s.State); err != nil {
		m.t.Error(err)
	}
	m.states[s.Index], m.files[s.Index] = s, b.Bytes()
	node := m.node
	m.queue = append(m.queue, func() {
		if m.node == node {
			node.Step(Saved{Bytes: 1})
		}
	})
}

func (m *member) carry(to uint64, e Event) {
	if to > uint64(len(m.members)) || m.cut != nil && m.cut(m.id, to) {
		return
	}
	m.queue = append(m.queue, func() {
		if other := m.members[to-1]; other.node != nil {
			other.node.Step(e)
		}
	})
}

func (m *member) Send(ms []*raftpb.Message) {
	for _, x := range ms {
		e := Received{Message: x}
		if x.GetType() == raftpb.MsgSnap {
			index, to := x.GetSnapshot().GetMetadata().GetIndex(), m.members[x.GetTo()-1]
			e.State, _, _ = wire.ReadSnapshotUpTo(to.levels().Newest, bytes.NewReader(m.files[index]))
			e.Roster = m.states[index].Roster
			to.states[index], to.files[index] = m.states[index], m.files[index]
			node := m.node
			m.queue = append(m.queue, func() { node.Step(SnapshotSent{To: to.id}) })
		}
		m.carry(x.GetTo(), e)
	}
}

func (m *member) Relay(to uint64, r Relay) []uint64 { m.carry(to, Relayed{m.id, r}); return nil }
func (m *member) Place(to uint64, p []Placement)    { m.carry(to, Placed(p)) }

// newTrio returns three nodes of which the first leads.
func newTrio(t *testing.T) *trio { return newGroup(t, 3) }

// newGroup returns so many nodes of which the first leads.
func newGroup(t *testing.T, count int) *trio {
	return newGroupOf(t, slices.Repeat([]Levels{KnownLevels}, count)...)
}

// newGroupOf returns a node for each program that knows some levels.
func newGroupOf(t *testing.T, programs ...Levels) *trio {
	x := &trio{t: t, mono: time.Hour}
	var begin []Member
	for i, known := range programs {
		id := uint64(i + 1)
		begin = append(begin, Member{ID: id, Name: fmt.Sprint("n", id), Peer: fmt.Sprint("p", id), Dir: fmt.Sprint("d", id), Levels: known})
	}
	for _, known := range programs {
		m := x.place()
		m.known = known
		m.start(begin)
	}
	for _, m := range x.members {
		m.node.Step(Stop{}) // sets it going without a tick, which would be an event of time
		m.node.stopped = false
	}
	x.run()
	x.lead(1)
	return x
}

// lead lets a node campaign, and wants it to win.
func (x *trio) lead(id uint64) {
	x.t.Helper()
	node := x.members[id-1].node
	if err := node.raft.Campaign(); err != nil {
		x.t.Fatal(err)
	}
	node.turn()
	x.run()
	if !node.lead.serving {
		x.t.Fatalf("node %d does not lead", id)
	}
}

// place makes room for one more node.
func (x *trio) place() *member {
	m := &member{
		trio: x, id: uint64(len(x.members) + 1), states: map[uint64]Snapshot{}, files: map[uint64][]byte{}, sums: map[uint64]uint32{},
	}
	x.members = append(x.members, m)
	return m
}

// start begins a node on what is durable.
func (m *member) start(begin []Member) {
	m.t.Helper()
	mark, hard := &walpb.Snapshot{}, &raftpb.HardState{}
	for _, w := range m.written {
		if w.Snapshot != nil {
			mark = w.Snapshot
		}
		if w.Hard != nil {
			hard = proto.Clone(w.Hard).(*raftpb.HardState)
		}
	}
	var entries []*raftpb.Entry
	for _, w := range m.written {
		for _, e := range w.Entries {
			if e.GetIndex() > mark.GetIndex() {
				entries = append(entries[:min(len(entries), int(e.GetIndex()-mark.GetIndex()-1))], e)
			}
		}
	}
	storage, err := NewStorage(mark, hard, entries)
	if err != nil {
		m.t.Fatal(err)
	}
	c := Config{
		ID: m.id, Storage: storage, State: core.New(), Roster: &Roster{Cluster: "c"}, Applied: mark.GetIndex(), Begin: begin, Levels: m.known, Nonce: m.id*1000 + uint64(len(m.written))<<20,
		Clock: m, Disk: m, Transport: m, Feed: engine.NewFeed(), Log: slog.New(slog.DiscardHandler), SnapshotEvery: 1 << 40,
		Summed: func(index uint64, s *core.State) { m.sums[index] = hash(m.t, s) },
	}
	if mark.GetIndex() > 0 {
		c.Roster = m.states[mark.GetIndex()].Roster
		if c.State, _, err = wire.ReadSnapshotUpTo(m.levels().Newest, bytes.NewReader(m.files[mark.GetIndex()])); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.node, err = New(c); err != nil {
		m.t.Fatal(err)
	}
	m.hanging, m.pending = false, nil
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
			if m.node != nil {
				m.node.Step(RaftTick{})
			}
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
	return len(m.node.state.View(0).Status("default", path, 0).Holders)
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

// A stale read is served by what the node has, also where nobody can be asked; others wait for a leader.
func TestAStaleReadAsksNobody(t *testing.T) {
	x := newTrio(t)
	last := x.members[2]
	last.call(lease("r", time.Minute))
	x.run()
	x.cut = func(from, to uint64) bool { return from == 3 || to == 3 }
	x.members[0].call(lease("s", time.Minute))
	x.run()
	var seen [2]int
	var told [2]bool
	stale := func(v core.View) {
		seen = [2]int{v.Status("default", "r", 0).Holding, v.Status("default", "s", 0).Holding}
	}
	last.node.Step(Reads{
		{Read: func(core.View) {}, Done: func(error) { told[0] = true }},
		{Read: stale, Stale: true, Done: func(err error) { told[1] = err == nil }},
	})
	if told != [2]bool{false, true} || seen != [2]int{1, 0} {
		t.Errorf("told %v, and seen %v", told, seen)
	}
	x.cut = nil
	x.ticks(60)
	if !told[0] {
		t.Error("a read that asks others was never answered")
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

// Who does not lead gives back what it gets. The node that had it knows then that nothing
// happened, and may pass it to another.
func TestWhoDoesNotLeadGivesARelayBack(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	second.node.lead.known = 3 // it has not heard yet who leads
	o := second.call(lease("r", time.Minute))
	x.run()
	if o.told || len(second.node.waiting) != 1 || x.members[0].holds("r") != 0 {
		t.Fatalf("%+v, %d wait", o, len(second.node.waiting))
	}
	second.node.lead.known = 1
	x.ticks(1)
	if !o.told || o.err != nil || x.members[0].holds("r") != 1 {
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
		t.Fatalf("it happened, at %d", first.node.state.Now())
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
		m.node.config.SnapshotEvery = 1
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
	if err := third.state.Check(); err != nil {
		t.Fatal(err)
	}
	// Time goes on from when the snapshot came, late and never early.
	if behind := x.mono - third.lead.received; behind < 0 || behind > 3*time.Second {
		t.Fatalf("its newest stamp came %v ago", behind)
	}
}

// A snapshot of a leader that lost the lead while it was sent is of no use. Its state, as large as the node's own, is
// not kept once the log has come past it.
func TestAStateThatRaftDidNotTakeIsLetGo(t *testing.T) {
	x := newTrio(t)
	first, third := x.members[0], x.members[2].node
	x.cut = func(from, to uint64) bool { return from == 3 || to == 3 }
	first.call(lease("a", time.Hour))
	x.run()
	s, err := first.node.Capture()
	if err != nil {
		t.Fatal(err)
	}
	third.Step(Received{Message: &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(3)), Term: new(third.Term() - 1),
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &s.Index, Term: &s.Term, ConfState: s.Members}},
	}, State: s.State, Roster: s.Roster})
	if len(third.arrived) != 1 || third.applied >= s.Index {
		t.Fatalf("%d states came; at %d", len(third.arrived), third.applied)
	}
	x.cut = nil
	x.ticks(20)
	if third.applied < s.Index || third.statistics.Installed != 0 || len(third.arrived) != 0 {
		t.Errorf("at %d of %d, installed %d, keeps %d", third.applied, s.Index, third.statistics.Installed, len(third.arrived))
	}
}

package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A verdict is what somebody was told who asked for a change, if anything yet.
type verdict struct {
	told   bool
	member Member
	index  uint64
	err    error
}

func (m *member) change(kind ChangeKind, about Member) *verdict {
	return m.changeTo(Change{Kind: kind, Member: about})
}

func (m *member) changeTo(c Change) *verdict {
	v := &verdict{}
	m.node.Step(Reconfigure{c, func(x Member, index uint64, err error) {
		if v.told {
			m.t.Error("told twice")
		}
		*v = verdict{true, x, index, err}
	}})
	return v
}

// change asks the leader for a change, and wants it done.
func (x *trio) change(kind ChangeKind, about Member) *verdict {
	x.t.Helper()
	v := x.leader().change(kind, about)
	x.ticks(3)
	if !v.told || v.err != nil {
		x.t.Fatalf("%v of %+v: %+v", kind, about, v)
	}
	return v
}

func (x *trio) leader() *member {
	x.t.Helper()
	for range 300 { // votes may be split, and raft draws its timeouts by chance
		for _, m := range x.members {
			if m.node != nil && m.node.lead.serving {
				return m
			}
		}
		x.ticks(1)
	}
	x.t.Fatal("nobody leads")
	return nil
}

func joiner(n int) Member {
	return Member{Name: fmt.Sprint("n", n), Peer: fmt.Sprint("p", n), Dir: fmt.Sprint("d", n)}
}

// join adds a server and starts it.
func (x *trio) join() *member {
	x.t.Helper()
	m := x.place()
	if v := x.change(Add, joiner(int(m.id))); v.member.ID != m.id || v.member.Voter {
		x.t.Fatalf("the next member is %+v", v.member)
	}
	m.start(nil)
	return m
}

func (x *trio) isolate(ids ...uint64) {
	x.cut = func(from, to uint64) bool { return slices.Contains(ids, from) || slices.Contains(ids, to) }
}

func (m *member) off() { m.node = nil }

func (m *member) voters() string { return fmt.Sprint(m.node.Roster().Voters()) }

func TestAServerGrowsToThreeAndKeepsItsLeases(t *testing.T) {
	x := newGroup(t, 1)
	x.members[0].call(lease("r", time.Hour))
	x.run()
	for range 2 {
		x.join()
		x.ticks(10)
	}
	for _, m := range x.members {
		if m.voters() != "[1 2 3]" || m.holds("r") != 1 || m.node.Roster().Open != 0 || m.node.Roster().Next != 4 {
			t.Fatalf("node %d: %+v, holds %d", m.id, m.node.Roster(), m.holds("r"))
		}
	}
	x.members[0].off()
	x.ticks(30)
	if o := x.leader().call(lease("other", time.Hour)); !o.told {
		x.run()
		if !o.told || o.err != nil {
			t.Fatalf("without the first: %+v", o)
		}
	}
}

func TestALearnerHasNoVote(t *testing.T) {
	x := newTrio(t)
	fourth := x.place()
	x.change(Add, joiner(4)) // it does not start
	x.isolate(2, 3)
	x.ticks(30)
	fourth.start(nil)
	x.ticks(30)
	for _, m := range x.members {
		if m.node.lead.serving && (m.id == 1 || m.id == 4) {
			t.Fatalf("node %d leads with the help of a learner", m.id)
		}
	}
}

func TestNobodyIsPromotedWhoIsBehindOrNotThere(t *testing.T) {
	x := newTrio(t)
	x.place()
	x.change(Add, joiner(4))
	v := x.leader().change(Promote, Member{ID: 4})
	x.ticks(20)
	if !v.told || !errors.Is(v.err, leasehold.ErrRefused) || x.members[0].voters() != "[1 2 3]" {
		t.Fatalf("%+v, the voters are %s", v, x.members[0].voters())
	}
}

// Raft does not write down what it knows to be committed. A leader of two that started
// again would wait for ever for the vote of one that was removed and turned off.
func TestARemovalThatWasAnsweredIsNotForgotten(t *testing.T) {
	x := newGroup(t, 2)
	v := x.members[0].change(Remove, Member{ID: 2})
	for !v.told && len(x.queue) > 0 {
		next := x.queue[0]
		x.queue = x.queue[1:]
		next()
	}
	if !v.told || v.err != nil {
		t.Fatalf("%+v", v)
	}
	x.members[1].off()
	x.members[0].off()
	x.queue = nil
	x.members[0].start(nil)
	x.ticks(40)
	if !x.members[0].node.lead.serving {
		t.Fatal("it waits for one that was removed")
	}
}

// Whoever is left after a removal was answered can go on without the leader that did it.
func TestARemovalThatWasAnsweredIsKnownToAMajority(t *testing.T) {
	x := newGroup(t, 4)
	x.isolate(3)
	x.change(Remove, Member{ID: 4})
	x.cut = nil
	x.members[3].off()
	x.members[0].off()
	for _, m := range x.members[1:3] {
		m.off()
		m.start(nil)
	}
	x.ticks(60)
	if x.leader().voters() != "[1 2 3]" {
		t.Fatalf("the voters are %s", x.leader().voters())
	}
}

// One that was removed is needed until nobody can forget that it is not.
func TestARemovedServerStaysUntilTheRemovalIsSettled(t *testing.T) {
	x := newGroup(t, 2)
	first, second := x.members[0], x.members[1]
	v := first.change(Remove, Member{ID: 2})
	for first.node.Roster().Leaves == nil {
		next := x.queue[0]
		x.queue = x.queue[1:]
		next()
	}
	if v.told || slices.Contains(first.node.Roster().Removed, 2) || second.node.Left() {
		t.Fatalf("%+v, %+v", v, first.node.Roster())
	}
	// The leader starts again before it has settled anything.
	first.off()
	x.queue = nil
	x.run()
	first.start(nil)
	x.ticks(60)
	if !first.node.lead.serving || first.voters() != "[1]" || !slices.Contains(first.node.Roster().Removed, 2) {
		t.Fatalf("it leads: %v, %+v", first.node.lead.serving, first.node.Roster())
	}
}

func TestALeaderHandsOverBeforeItsOwnRemoval(t *testing.T) {
	x := newTrio(t)
	v := x.members[0].change(Remove, Member{ID: 1})
	x.ticks(10)
	if !v.told || !errors.Is(v.err, leasehold.ErrUnavailable) || x.members[0].node.lead.serving {
		t.Fatalf("%+v", v)
	}
	x.change(Remove, Member{ID: 1})
	if got := x.leader().voters(); got != "[2 3]" {
		t.Fatalf("the voters are %s", got)
	}
}

// Another began its removal, and then it was elected: it must not be the only one who
// knows that it is gone.
func TestALeaderThatFindsItsOwnRemovalHandsOver(t *testing.T) {
	x := newGroup(t, 2)
	first, second := x.members[0], x.members[1]
	carried := 0
	x.cut = func(from, to uint64) bool { carried++; return from == 2 && carried > 0 } // the second gets it, and cannot say so
	first.change(Remove, Member{ID: 2})
	x.run()
	first.off()
	x.queue, x.cut = nil, nil
	first.start(nil)
	x.isolate()
	if err := second.node.raft.Campaign(); err != nil {
		t.Fatal(err)
	}
	second.node.turn()
	x.ticks(60)
	if second.node.Failure() != nil || !first.node.lead.serving || first.voters() != "[1]" {
		t.Fatalf("the second: %v; the first leads: %v, voters %s", second.node.Failure(), first.node.lead.serving, first.voters())
	}
	// And it is not forgotten.
	first.off()
	second.off()
	x.queue = nil
	first.start(nil)
	x.ticks(30)
	if !first.node.lead.serving {
		t.Fatal("it waits for one that was removed")
	}
}

func TestAJoinerBeginsFromASnapshotOlderThanItsAdd(t *testing.T) {
	x := newGroup(t, 1)
	first := x.members[0]
	first.node.config.SnapshotEvery = 1
	for _, path := range []string{"a", "b", "c", "d"} {
		first.call(lease(path, time.Hour))
		x.run()
	}
	first.node.config.SnapshotEvery = 1 << 40
	second := x.join()
	x.ticks(30)
	if second.node.statistics.Installed == 0 || second.holds("d") != 1 || second.voters() != "[1 2]" {
		t.Fatalf("installed %d, holds %d, voters %s", second.node.statistics.Installed, second.holds("d"), second.voters())
	}
	second.off()
	second.start(nil)
	x.ticks(30)
	if second.voters() != "[1 2]" || second.holds("d") != 1 {
		t.Fatalf("after a restart: voters %s", second.voters())
	}
}

func TestNoIDIsGivenTwice(t *testing.T) {
	x := newTrio(t)
	x.join()
	x.ticks(10)
	x.change(Remove, Member{ID: 4})
	x.members[3].off()
	again := x.change(Add, joiner(4)) // its name is free
	if again.member.ID != 5 {
		t.Fatalf("the next one is %+v", again.member)
	}
	for _, id := range []uint64{1, 4, 5} {
		v := x.leader().change(Add, Member{ID: id, Name: "x", Peer: "y"})
		x.ticks(3)
		if !errors.Is(v.err, leasehold.ErrRefused) {
			t.Errorf("id %d again: %+v", id, v)
		}
	}
	if v := x.change(Remove, Member{ID: 4}); v.index != 0 {
		t.Errorf("removed again: %+v", v)
	}
}

func TestChangesThatWouldEndTheClusterAreRefused(t *testing.T) {
	alone := newGroup(t, 1)
	v := alone.members[0].change(Remove, Member{ID: 1})
	alone.run()
	if !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("the only one: %+v", v)
	}
	x := newTrio(t)
	x.isolate(3)
	x.ticks(electionTicks + 5)
	v = x.leader().change(Remove, Member{ID: 2})
	x.ticks(3)
	if !errors.Is(v.err, leasehold.ErrRefused) || x.leader().voters() != "[1 2 3]" {
		t.Errorf("one of the last two: %+v", v)
	}
	x.change(Remove, Member{ID: 3}) // that is how one gets rid of it
	v = x.leader().change(Promote, Member{ID: 9})
	x.ticks(3)
	if !errors.Is(v.err, leasehold.ErrNotFound) {
		t.Errorf("nobody: %+v", v)
	}
	v = x.members[1].change(Sum, Member{})
	if !errors.Is(v.err, leasehold.ErrUnavailable) {
		t.Errorf("by one that does not lead: %+v", v)
	}
}

func TestAServerThatLostItsDataIsNotLetIn(t *testing.T) {
	x := newTrio(t)
	r := x.members[0].node.Roster()
	if err := r.Admit(2, "d2"); err != nil {
		t.Error(err)
	}
	if err := r.Admit(2, "another"); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "without its data") {
		t.Errorf("with another directory: %v", err)
	}
	if err := r.Admit(4, "d4"); err != nil {
		t.Errorf("one that is added just now, maybe: %v", err)
	}
	v := x.leader().change(Announce, Member{ID: 2, Dir: "another"})
	x.ticks(3)
	if !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("it announces another directory: %+v", v)
	}
	x.change(Remove, Member{ID: 2})
	if err := x.leader().node.Roster().Admit(2, "d2"); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("after its removal: %v", err)
	}
}

// An operator adds a server by its address; when it comes, it says the rest.
func TestAddingAgainSaysWhatIsNew(t *testing.T) {
	x := newTrio(t)
	x.place()
	first := x.change(Add, Member{Name: "n4", Peer: "p4"})
	again := x.change(Add, joiner(4))
	if again.member.ID != first.member.ID || again.member.Dir != "d4" {
		t.Errorf("%+v, then %+v", first.member, again.member)
	}
	if v := x.change(Add, Member{Name: "n4", Peer: "p4"}); v.index != 0 || v.member.Dir != "d4" {
		t.Errorf("the operator again: %+v", v)
	}
	v := x.leader().change(Add, Member{Name: "n4", Peer: "p4", Dir: "another"})
	x.ticks(1)
	if !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("with another directory: %+v", v)
	}
}

func TestManyCommandsArePassedOnInPieces(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	var calls Commands
	done := 0
	for i := range maxBatchCommands + 10 {
		calls = append(calls, Call{Bytes: bytesOf(t, lease(fmt.Sprint("r", i), time.Hour)), Done: func(_ core.Answer, err error) {
			if err == nil {
				done++
			}
		}})
	}
	second.node.Step(calls)
	x.run()
	x.ticks(3)
	if done != len(calls) {
		t.Fatalf("%d of %d are done", done, len(calls))
	}
}

func TestAnnouncementsReachEverybody(t *testing.T) {
	x := newTrio(t)
	x.change(Announce, Member{ID: 2, Client: "http://two", Version: "v9"})
	for _, m := range x.members {
		if got, _ := m.node.Roster().Member(2); got.Client != "http://two" || got.Version != "v9" || got.Peer != "p2" || !got.Voter {
			t.Errorf("node %d knows %+v", m.id, got)
		}
	}
	if v := x.change(Announce, Member{ID: 2, Client: "http://two"}); v.index != 0 {
		t.Errorf("nothing new stands in the log at %d", v.index)
	}
	v := x.leader().change(Announce, Member{ID: 2, Name: "n3"})
	x.ticks(1)
	if !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("another's name: %+v", v)
	}
}

func TestAllSumUpTheSameState(t *testing.T) {
	x := newTrio(t)
	x.members[1].call(lease("r", time.Hour))
	x.run()
	v := x.change(Sum, Member{})
	for _, m := range x.members {
		if sum, ok := m.sums[v.index]; !ok || sum != x.members[0].sums[v.index] {
			t.Errorf("node %d: %v at %d", m.id, m.sums, v.index)
		}
	}
}

func TestAnExpelledServerTakesNothingMore(t *testing.T) {
	x := newTrio(t)
	x.change(Remove, Member{ID: 3})
	third := x.members[2]
	o := third.call(lease("r", time.Hour))
	third.node.Step(Expelled{})
	if !third.node.Left() || !errors.Is(third.node.Failure(), ErrRemoved) || !o.told || o.err == nil {
		t.Fatalf("left: %v, failure %v, %+v", third.node.Left(), third.node.Failure(), o)
	}
}

// What this version does not know it must not take for something else.
func TestAnUnknownChangeStopsTheNode(t *testing.T) {
	for what, cc := range map[string]*raftpb.ConfChange{
		"kind":  {Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(2)), Context: []byte(`{"kind":77,"member":{"id":2}}`)},
		"field": {Type: raftpb.ConfChangeUpdateNode.Enum(), NodeId: new(uint64(2)), Context: []byte(`{"kind":2,"member":{"id":2},"witness":true}`)},
		"none":  {Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(2))},
		"other": {Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(2)), Context: []byte(`{"kind":2,"member":{"id":2}}`)},
	} {
		x := newTrio(t)
		if err := x.members[0].node.raft.ProposeConfChange(cc); err != nil {
			t.Fatal(err)
		}
		x.members[0].node.turn()
		x.ticks(3)
		if x.members[0].node.Failure() == nil || len(x.members[0].node.members.GetVoters()) != 3 {
			t.Errorf("unknown %s: it goes on with the voters %v", what, x.members[0].node.members.GetVoters())
		}
	}
}

// A batch that is sealed while a snapshot is marked has no place in the log yet, and is in
// raft's hands all the same: with the lead lost in between it was called refused, and kept.
func TestABatchIsNotSealedWhileASnapshotIsMarked(t *testing.T) {
	s := started(t)
	s.node.config.SnapshotEvery = 1
	s.call(lease("a", time.Minute))
	s.syncs()
	if s.saving == nil {
		t.Fatal("no snapshot was taken")
	}
	o := &outcome{}
	s.node.inbox = append(s.node.inbox, Call{Bytes: bytesOf(t, lease("b", time.Hour)), Done: func(a core.Answer, err error) { *o = outcome{true, a, err} }})
	s.step(Saved{Bytes: 1})
	if s.inFlight == nil || s.inFlight.Snapshot == nil {
		t.Fatal("no mark is written")
	}
	if s.node.unplaced != nil {
		t.Fatal("a batch is in raft's hands without a place while the mark is written")
	}
	s.syncs()
	if !o.told || o.err != nil {
		t.Fatalf("%+v", o)
	}
}

// What a deposed leader proposed beyond the end of the next one's log is over as soon as
// that one has written anything.
func TestWhatTheNextLeaderNeverGotIsAnswered(t *testing.T) {
	x := newTrio(t)
	first := x.members[0]
	x.isolate(1)
	var lost []*outcome
	for i := range 10 {
		lost = append(lost, first.call(lease(fmt.Sprint("r", i), time.Hour)))
		x.run()
	}
	x.ticks(40)
	x.cut = nil
	x.ticks(10)
	for i, o := range lost {
		if !o.told || !errors.Is(o.err, leasehold.ErrUnavailable) {
			t.Errorf("call %d: %+v", i, o)
		}
	}
	if len(first.node.proposed) > 0 {
		t.Errorf("%d batches are kept for ever", len(first.node.proposed))
	}
}

// An election is a pause and not an error.
func TestCallsAndReadsWaitForALeader(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	x.members[0].off()
	for i := 0; second.node.lead.known == 1 && i < 3*electionTicks; i++ {
		x.ticks(1)
	}
	o, r := second.call(lease("r", time.Hour)), second.read()
	x.ticks(LeaderTicks - 1)
	if !o.told || o.err != nil || !r.told || r.err != nil {
		t.Fatalf("a call %+v, a read %+v", o, r)
	}
}

func TestNobodyWaitsForALeaderForEver(t *testing.T) {
	x := newTrio(t)
	second := x.members[1]
	x.isolate(2)
	x.ticks(3 * electionTicks)
	o, r := second.call(lease("r", time.Hour)), second.read()
	x.ticks(LeaderTicks - 1)
	if o.told || r.told {
		t.Fatalf("too soon: %+v, %+v", o, r)
	}
	x.ticks(2)
	if !errors.Is(o.err, leasehold.ErrUnavailable) || !errors.Is(r.err, leasehold.ErrUnavailable) {
		t.Fatalf("%+v, %+v", o, r)
	}
}

func TestALeaderThatStopsIsNotIdleBeforeAnotherLeads(t *testing.T) {
	x := newTrio(t)
	first := x.members[0]
	first.node.Step(Stop{})
	if first.node.Idle() {
		t.Fatal("it goes before it has handed over")
	}
	x.ticks(5)
	if !first.node.Idle() || x.leader() == first {
		t.Fatal("it does not end")
	}
}

// With one of three gone a moment ago, and maybe for good, nobody can be removed: a
// majority of those two would be missing for ever.
func TestNobodyIsRemovedOnTheStrengthOfOneThatWasJustLost(t *testing.T) {
	x := newTrio(t)
	x.ticks(3)
	x.members[2].off()
	v := x.leader().change(Remove, Member{ID: 2})
	x.ticks(electionTicks + 5)
	if !v.told || !errors.Is(v.err, leasehold.ErrRefused) || x.leader().voters() != "[1 2 3]" {
		t.Fatalf("it was told %+v, and the voters are %v", v, x.members[0].voters())
	}
	if o := x.leader().call(lease("r", time.Minute)); true {
		x.ticks(2)
		if !o.told || o.err != nil {
			t.Errorf("the other two do not go on: %+v", o)
		}
	}
	x.change(Remove, Member{ID: 3}) // that one can go
}

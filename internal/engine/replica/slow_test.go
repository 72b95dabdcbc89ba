package replica

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
)

// A slowTrio is a trio whose messages, or whose disks, take so many ticks.
type slowTrio struct {
	*trio
	ticksEach int
	now       int
	held      []heldBack
}

type heldBack struct {
	at int
	do func()
}

// later does something when it has taken as long as everything does.
func (s *slowTrio) later(do func()) { s.held = append(s.held, heldBack{s.now + s.ticksEach, do}) }

// pass lets so many ticks go by.
func (s *slowTrio) pass(ticks int) {
	for range ticks {
		s.ticks(1)
		s.now++
		for len(s.held) > 0 && s.held[0].at <= s.now {
			do := s.held[0].do
			s.held = s.held[1:]
			do()
		}
		s.run()
	}
}

// A slowNet is a member's end of a network on which everything takes as long.
type slowNet struct {
	*member
	slow *slowTrio
}

func (l *slowNet) Send(ms []*raftpb.Message) { l.slow.later(func() { l.member.Send(ms) }) }
func (l *slowNet) Relay(to uint64, r Relay) []uint64 {
	l.slow.later(func() { l.member.Relay(to, r) })
	return nil
}

func (l *slowNet) Place(to uint64, p []Placement) {
	l.slow.later(func() { l.member.Place(to, p) })
}

// A slowDisk is a member's disk, of which each write takes as long.
type slowDisk struct {
	*member
	slow *slowTrio
}

func (l *slowDisk) Write(w Write) { l.slow.later(func() { l.member.Write(w) }) }

func newSlowNet(t *testing.T, oneWay int) *slowTrio {
	s := &slowTrio{trio: newTrio(t), ticksEach: oneWay}
	for _, m := range s.members {
		m.node.transport = &slowNet{m, s}
	}
	return s
}

func newSlowDisks(t *testing.T, sync int) *slowTrio {
	s := &slowTrio{trio: newTrio(t), ticksEach: sync}
	for _, m := range s.members {
		m.node.disk = &slowDisk{m, s}
	}
	return s
}

// work lets readers and writers come to all nodes, tick after tick, and wants all of them
// to be answered in the end, and nobody else to lead.
func (s *slowTrio) work(ticks int) {
	s.t.Helper()
	term := s.members[0].node.lead.term
	var reads, writes []*outcome
	for i := range ticks {
		for _, m := range s.members {
			reads = append(reads, m.read())
			c := lease(fmt.Sprint("r", m.id, ".", i), time.Hour)
			c.ID = c.Resource
			writes = append(writes, m.call(c))
		}
		s.pass(1)
	}
	s.pass(readTicks)
	s.wantAll("read", reads)
	s.wantAll("write", writes)
	if lead := s.members[0].node.lead; !lead.serving || lead.term != term {
		s.t.Errorf("the first node serves: %v, in term %d, and it was %d", lead.serving, lead.term, term)
	}
}

func (s *slowTrio) wantAll(what string, outcomes []*outcome) {
	s.t.Helper()
	failed, why := 0, error(nil)
	for _, o := range outcomes {
		if !o.told || o.err != nil {
			failed, why = failed+1, o.err
		}
	}
	if failed > 0 {
		s.t.Errorf("%d of %d %ss failed: %v", failed, len(outcomes), what, why)
	}
}

// Reads and writes go on at every node whatever a message takes, below the election timeout.
func TestReadsGoOnOnASlowNetwork(t *testing.T) {
	for oneWay := range electionTicks / 2 {
		t.Run(fmt.Sprint(time.Duration(oneWay)*TickEvery), func(t *testing.T) { newSlowNet(t, oneWay).work(40) })
	}
}

// And whatever a write takes, as long as a leader keeps its lead with such a disk.
func TestReadsGoOnOnSlowDisks(t *testing.T) {
	for sync := 1; time.Duration(sync)*TickEvery < SlowWrite; sync++ {
		t.Run(fmt.Sprint(time.Duration(sync)*TickEvery), func(t *testing.T) { newSlowDisks(t, sync).work(40) })
	}
}

// The lead can be given away while everybody writes.
func TestHandOversGoOnOnASlowNetwork(t *testing.T) {
	for oneWay := range electionTicks / 2 {
		t.Run(fmt.Sprint(time.Duration(oneWay)*TickEvery), func(t *testing.T) {
			s := newSlowNet(t, oneWay)
			for i := range 10 {
				s.members[0].call(lease(fmt.Sprint("r", i), time.Hour))
				s.pass(1)
			}
			s.members[0].node.Step(Transfer{To: 2})
			for range 4 * electionTicks {
				s.members[0].call(lease("again", time.Hour))
				s.pass(1)
			}
			if !s.members[1].node.lead.serving {
				t.Error("the second node does not lead")
			}
		})
	}
}

// One round serves all who came before it was asked, and a late answer is still an answer.
func TestAnAnswerServesEarlierRounds(t *testing.T) {
	s := newSlowNet(t, 4)
	first := s.members[0].read()
	s.pass(roundTicks)
	second := s.members[0].read()
	s.pass(3)
	if !first.told || first.err != nil {
		t.Fatalf("the first: %+v", first)
	}
	if second.told {
		t.Fatal("the second is answered from a round that was asked before it came")
	}
	s.pass(10)
	if !second.told || second.err != nil {
		t.Fatalf("the second: %+v", second)
	}
}

// An answer to a question that another process of this node asked is none to this one's.
func TestAnAnswerToAnEarlierProcessServesNobody(t *testing.T) {
	x := newTrio(t)
	n := x.members[1].node
	for _, id := range []uint64{n.firstRound - 1, n.firstRound, n.round + 1, n.round + 2, 0} {
		n.rounds = []readRound{{n.round, []ReadCall{{Read: func(core.View) {}, Done: func(error) { t.Errorf("served by %d", id) }}}}}
		n.confirm(readStates(id))
		n.serveReads()
	}
}

// Those who wait in vain are told what is known, and not that nobody leads.
func TestReadersAreToldWhoDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		node   int
		leader uint64
		want   string
	}{
		{1, 1, "server n1 leads, but did not answer in time"},
		{0, 1, "this server leads, but a majority of the servers did not answer in time"},
		{1, 0, "no leader is known"},
	} {
		x := newTrio(t)
		m := x.members[c.node]
		x.cut = func(from, to uint64) bool { return true }
		o := m.read()
		m.node.lead.known = c.leader
		m.node.ticks += readTicks
		m.node.tickReads()
		if !o.told || o.err == nil || !strings.HasPrefix(o.err.Error(), c.want) {
			t.Errorf("%+v, want %q", o, c.want)
		}
	}
}

func readStates(id uint64) []raft.ReadState {
	return []raft.ReadState{{Index: 1, RequestCtx: binary.BigEndian.AppendUint64(nil, id)}}
}

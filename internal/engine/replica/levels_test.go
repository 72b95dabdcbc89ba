package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// nextLevels are those that the release after this one knows.
var nextLevels = Levels{core.OldestLevel, core.NewestLevel + 1}

// A cluster that begins decides on a level before its first command.
func TestABeginningClusterIsAtTheNewestLevelOfAll(t *testing.T) {
	for _, known := range []Levels{KnownLevels, nextLevels} {
		for _, m := range newGroupOf(t, known, known, known).members {
			if m.node.roster.Level != known.Newest || m.node.state.Level() != known.Newest {
				t.Errorf("node %d is at %d, and its state at %d", m.id, m.node.roster.Level, m.node.state.Level())
			}
		}
	}
}

// No server does what no release has: without a test, a node knows what its program knows.
func TestANodeKnowsTheLevelsOfItsProgram(t *testing.T) {
	x := newTrio(t)
	x.members[0].node.config.Levels = Levels{}
	if got := x.members[0].node.levels(); got != (Levels{core.OldestLevel, core.NewestLevel}) {
		t.Errorf("it knows %v", got)
	}
}

// A command that the leader cannot read would stop every node that applies it, for good.
func TestACommandThatTheLeaderDoesNotKnowIsRefused(t *testing.T) {
	for what, bytes := range map[string][]byte{
		"an unknown kind":   {120, 0},
		"garbage":           {4, 3, 255, 255, 255},
		"nothing":           {},
		"two commands":      append(bytesOf(t, &core.Renew{Namespace: "default", ID: "a"}), bytesOf(t, &core.Renew{Namespace: "default", ID: "a"})...),
		"an origin alone":   {0, 3, 1, 'a', 0},
		"an unknown origin": {0, 3, 1, 'a', 0, 120, 0},
	} {
		x := newTrio(t)
		follower := x.members[1]
		told := errors.New("nobody was told")
		follower.node.Step(Commands{{Bytes: bytes, Done: func(_ core.Answer, err error) { told = err }}})
		good := follower.call(lease("r", time.Minute))
		x.ticks(5)
		if !errors.Is(told, leasehold.ErrRefused) {
			t.Errorf("%s: %v", what, told)
		}
		if !good.told || good.err != nil {
			t.Errorf("%s: what comes after it: %+v", what, good)
		}
		for _, m := range x.members {
			if err := m.node.Failure(); err != nil {
				t.Errorf("%s: node %d: %v", what, m.id, err)
			}
		}
	}
}

// What a newer server says of itself is kept, and comes through the log and a state file.
func TestWhatANewerServerSaysOfItselfIsKept(t *testing.T) {
	x := newTrio(t)
	context := []byte(`{"kind":2,"member":{"id":2,"version":"v9","levels":{"oldest":1,"newest":9},"zone":"a","load":{"b":1}}}`)
	err := x.members[0].node.raft.ProposeConfChange(&raftpb.ConfChange{
		Type: raftpb.ConfChangeUpdateNode.Enum(), NodeId: new(uint64(2)), Context: context,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.members[0].node.turn()
	x.ticks(3)
	for _, m := range x.members {
		if m.node.Failure() != nil {
			t.Fatal(m.node.Failure())
		}
		two, _ := m.node.Roster().Member(2)
		if two.Version != "v9" || two.Levels != (Levels{1, 9}) || two.unknown != `{"load":{"b":1},"zone":"a"}` {
			t.Errorf("%+v", two)
		}
		b, err := json.Marshal(two)
		var again Member
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || again != two {
			t.Errorf("%s: %+v, %v", b, again, err)
		}
	}
}

func TestMemberFieldsAreAllKnown(t *testing.T) {
	var tags []string
	for field := range reflect.TypeFor[Member]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			tags = append(tags, name)
		}
	}
	if !slices.Equal(tags, memberFields) {
		t.Errorf("Member has the fields %q, and memberFields says %q", tags, memberFields)
	}
}

// A level that some member does not know is not for the cluster.
func TestALevelThatNotAllKnowIsRefused(t *testing.T) {
	x := newTrio(t)
	level := core.NewestLevel + 1
	v := x.leader().changeTo(Change{Kind: Raise, Level: level})
	x.ticks(3)
	if !v.told || !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("%+v", v)
	}
	// One that is newer than all that there is finds no place.
	v = x.leader().change(Add, Member{Name: "n4", Peer: "p4", Levels: Levels{level, level}})
	x.ticks(3)
	if !v.told || !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("%+v", v)
	}
}

// newMixedTrio returns three nodes of which the last is of the version before.
func newMixedTrio(t *testing.T) *trio {
	t.Helper()
	return newGroupOf(t, nextLevels, nextLevels, KnownLevels)
}

// levels wants every node to be at a level.
func (x *trio) levels(want core.Level) {
	x.t.Helper()
	for _, m := range x.members {
		if m.node == nil {
			continue
		}
		if got := m.node.state.Level(); got != want || m.node.Failure() != nil {
			x.t.Errorf("node %d is at level %d, want %d; %v", m.id, got, want, m.node.Failure())
		}
	}
}

// A server of the older version holds the level back until it is upgraded, and then an operator
// raises it.
func TestALevelIsRaisedOnceAllKnowIt(t *testing.T) {
	x := newMixedTrio(t)
	older, newer := KnownLevels.Newest, nextLevels.Newest
	x.levels(older)
	v := x.leader().changeTo(Change{Kind: Raise, Level: newer})
	x.ticks(3)
	if !v.told || !errors.Is(v.err, leasehold.ErrRefused) || !strings.Contains(v.err.Error(), fmt.Sprintf("n3 knows %v", KnownLevels)) {
		t.Fatalf("%+v", v)
	}
	// It is upgraded: until somebody asks for it, the level stays, so that all can go back.
	x.members[2].known = nextLevels
	x.members[2].start(nil)
	x.change(Announce, Member{ID: 3, Levels: nextLevels})
	x.ticks(20)
	x.levels(older)
	x.raise(newer)
	x.levels(newer)
	if v := x.leader().changeTo(Change{Kind: Raise}); !v.told || v.err != nil || v.index != 0 {
		t.Errorf("asked again: %+v", v)
	}
	if v := x.leader().changeTo(Change{Kind: Raise, Level: older}); !v.told || !errors.Is(v.err, leasehold.ErrRefused) {
		t.Errorf("asked to go back: %+v", v)
	}
	// One that starts again, or is far behind, is at the level too.
	for _, m := range x.members {
		m.start(nil)
	}
	x.ticks(100) // an election may have to be repeated
	x.levels(newer)
}

// raise asks the leader for a level, and wants it.
func (x *trio) raise(to core.Level) {
	x.t.Helper()
	v := x.leader().changeTo(Change{Kind: Raise, Level: to})
	x.ticks(3)
	if !v.told || v.err != nil {
		x.t.Fatalf("%+v", v)
	}
}

// A raise that stands behind the add of a server which does not know the level does nothing,
// whoever wrote it: in the log, the roster decides and not the leader.
func TestARaiseBehindAnOlderMemberDoesNothing(t *testing.T) {
	x := newMixedTrio(t)
	node := x.leader().node
	if !node.proposeChange(Change{Kind: Raise, Member: Member{ID: node.id}, Level: nextLevels.Newest}) {
		t.Fatal("raft did not take it")
	}
	node.turn()
	x.ticks(5)
	x.levels(KnownLevels.Newest)
}

// And a server that does not know the level gets no place behind the raise.
func TestAnOlderServerBehindTheRaiseIsNotAdded(t *testing.T) {
	x := newGroupOf(t, nextLevels, nextLevels, nextLevels)
	x.levels(nextLevels.Newest)
	node, older := x.leader().node, KnownLevels
	for _, c := range []Change{
		{Kind: Add, Member: Member{ID: 4, Name: "n4", Peer: "p4", Levels: older}},
		{Kind: Announce, Member: Member{ID: 3, Levels: older}},
	} {
		if v := x.leader().changeTo(c); !v.told || !errors.Is(v.err, leasehold.ErrRefused) {
			t.Errorf("%v: %+v", c.Kind, v)
		}
		if !node.proposeChange(c) {
			t.Fatal("raft did not take it")
		}
		node.turn()
		x.ticks(5)
	}
	for _, m := range x.members {
		if len(m.node.Roster().Members) != 3 || len(m.node.Roster().without(nextLevels.Newest)) != 0 {
			t.Errorf("node %d has %+v", m.id, m.node.Roster().Members)
		}
	}
}

// A program that went back to the older version in the very moment of the raise stops, and
// says what to do.
func TestAnOlderProgramStopsAtARaise(t *testing.T) {
	x := newGroupOf(t, nextLevels, nextLevels, nextLevels)
	x.members[2].known = KnownLevels
	x.members[2].start(nil)
	x.ticks(100)
	err := x.members[2].node.Failure()
	if err == nil || !strings.Contains(err.Error(), "use the newer version") {
		t.Errorf("%v", err)
	}
}

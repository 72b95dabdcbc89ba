package cluster

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/peer"
)

// A cluster that begins decides on a level before its first command.
func TestABeginningClusterIsAtTheNewestLevelOfAll(t *testing.T) {
	x := newTrio(t)
	for _, m := range x.members {
		if m.node.roster.Level != core.NewestLevel || m.node.State.Level() != core.NewestLevel {
			t.Errorf("node %d is at %d, and its state at %d", m.id, m.node.roster.Level, m.node.State.Level())
		}
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
	context := []byte(`{"kind":2,"member":{"id":2,"version":"v9","levels":{"oldest":3,"newest":9},"zone":"a","load":{"b":1}}}`)
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
		if two.Version != "v9" || two.Levels != (Levels{3, 9}) || two.unknown != `{"load":{"b":1},"zone":"a"}` {
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

func TestAServerOfAnotherLevelIsNotAdmitted(t *testing.T) {
	n := &network{
		mesh: peer.New(peer.Config{Self: peer.Identity{Cluster: "c", ID: 1, Name: "n1"}}), places: map[uint64]peer.Peer{},
		roster: &Roster{Cluster: "c", Level: 5, Members: []Member{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}}},
	}
	for _, test := range []struct {
		oldest, newest uint64
		admitted       bool
	}{{0, 0, false}, {3, 4, false}, {3, 5, true}, {5, 5, true}, {4, 7, true}, {6, 7, false}} {
		from := peer.Identity{Cluster: "c", ID: 2, Name: "n2", OldestLevel: test.oldest, NewestLevel: test.newest}
		refused := n.Admit(from, true)
		if (refused == nil) != test.admitted || refused != nil && refused.Reason != peer.WrongLevel {
			t.Errorf("levels %d to %d: %v", test.oldest, test.newest, refused)
		}
	}
}

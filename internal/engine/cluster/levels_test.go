package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

func TestAServerOfAnotherLevelIsNotAdmitted(t *testing.T) {
	n := &network{
		mesh: peer.New(peer.Config{Self: peer.Identity{Cluster: "c", ID: 1, Name: "n1"}}), places: map[uint64]peer.Peer{},
		roster: &replica.Roster{Cluster: "c", Level: 5, Members: []replica.Member{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}}},
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

func TestTheFormatOfADirectoryFollowsTheLevel(t *testing.T) {
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock()})
	acquire(t, e, "r")
	closed(t, e)
	d, err := storage.OpenDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Format != storage.FormatAt(core.NewestLevel) || storage.FormatAt(core.Level3) != 2 {
		t.Errorf("it has format %d", d.Format)
	}
}

// A server without an address for others could not talk to one that is added, and would have
// to stop.
func TestNobodyIsAddedToAServerWithoutAnAddress(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	defer closed(t, e)
	_, err := e.Add(t.Context(), "n2", "127.0.0.1:4664")
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "--peer-listen") {
		t.Errorf("it is answered with %v", err)
	}
	acquire(t, e, "r")
	if len(e.network.current().Members) != 1 || isClosed(e.failed) {
		t.Errorf("the members are %+v", e.network.current().Members)
	}
}

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A certificate is not enough: a server waits until an operator has prepared a place for it.
func TestAServerJoinsOnlyWhereAPlaceIsPrepared(t *testing.T) {
	inVirtualTime(t, aServerJoinsOnlyWhereAPlaceIsPrepared)
}

func aServerJoinsOnlyWhereAPlaceIsPrepared(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	listener := s.listen("n4")
	address := listener.Addr().String()
	started := make(chan *Engine, 1)
	go func() {
		e, err := s.start("n4", listener, Config{Join: []string{s.members[1].Peer}})
		if err != nil {
			t.Error(err)
		}
		started <- e
	}()
	time.Sleep(time.Minute)
	if n := len(s.leader().network.current().Members); n != 3 || len(started) > 0 {
		t.Fatalf("there are %d members, and nobody added one", n)
	}
	want := "the cluster has no place for server n4 at " + address + ": prepare one with leasehold cluster add n4 " + address
	s.await("words about it", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.logs["n4"].String(), want)
	})
	if _, err := s.follower().Add(t.Context(), "n4", address); err != nil {
		t.Fatal(err)
	}
	e := <-started
	s.await("its vote", func() bool { m, _ := s.leader().network.current().Named("n4"); return m.Voter && m.Dir == e.self.Dir })
}

// A stranger that makes up an id which nobody was given yet can neither ask nor send.
func TestAStrangerIsNotLetIn(t *testing.T) { inVirtualTime(t, aStrangerIsNotLetIn) }

func aStrangerIsNotLetIn(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	first := s.engines["n1"]
	handler := &network{dir: first.network.dir, log: first.log}
	stranger := peer.New(peer.Config{
		Handler: handler, Dial: s.wires.dial,
		Self: peer.Identity{Cluster: first.network.dir.Cluster, ID: 99, Name: "evil", Dir: "evil", Address: "evil:1", NewestLevel: 1, OldestLevel: 1},
	})
	handler.mesh = stranger
	defer stranger.Close()
	for range 5 {
		_, err := stranger.AskAt(t.Context(), first.self.Peer, askChange, []byte(`{"kind":1,"member":{"name":"evil","peer":"evil:1"}}`))
		var r *peer.Refusal
		if !errors.Is(err, leasehold.ErrUnavailable) || !errors.As(err, &r) || r.Reason != peer.NotReady {
			t.Fatalf("it was answered: %v", err)
		}
		time.Sleep(2 * vouchWithin)
	}
	if refused := first.network.Admit(peer.Identity{Cluster: first.network.dir.Cluster, ID: 99, Name: "evil", Dir: "evil", NewestLevel: 1, OldestLevel: 1}, false); refused == nil {
		t.Error("it may send messages")
	}
	if n := len(s.leader().network.current().Members); n != 3 {
		t.Errorf("there are %d members", n)
	}
}

// A server that has just joined, and waits for its first snapshot, takes that from those who took it in, and from
// whom they know: not from any server of the authority.
func TestAStrangerIsNotLetInByAJoiner(t *testing.T) { inVirtualTime(t, aStrangerIsNotLetInByAJoiner) }

func aStrangerIsNotLetInByAJoiner(t *testing.T, s *site) {
	s.begin("n1")
	n := s.join("n2", s.engines["n1"]).network
	n.mu.Lock()
	n.roster = &replica.Roster{} // as it is until the snapshot is there
	n.mu.Unlock()
	first := s.engines["n1"].network.mesh.Self()
	stranger := first
	stranger.ID, stranger.Name, stranger.Dir, stranger.Address = 99, "evil", "evil", "evil:1"
	if refused := n.Admit(stranger, false); refused == nil || refused.Reason != peer.NotReady {
		t.Errorf("a stranger is told %v", refused)
	}
	stranger.ID = first.ID
	if refused := n.Admit(stranger, false); refused == nil {
		t.Error("a stranger is let in under the id of another")
	}
	if refused := n.Admit(first, false); refused != nil {
		t.Errorf("who took it in is told %v", refused)
	}
}

// A server that is behind lets one in that it does not know, once another member knows it.
func TestAMemberThatIsNotKnownYetIsVouchedFor(t *testing.T) {
	inVirtualTime(t, aMemberThatIsNotKnownYetIsVouchedFor)
}

func aMemberThatIsNotKnownYetIsVouchedFor(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	n4 := s.join("n4", s.leader())
	behind := s.engines["n1"].network
	// As if it had not come so far in the log.
	old := *behind.current()
	old.Members, old.Next = old.Members[:3], 4
	behind.mu.Lock()
	behind.roster = &old
	behind.mu.Unlock()
	who := n4.network.mesh.Self()
	s.await("a word for it", func() bool { return behind.Admit(who, true) == nil })
	who.Dir = "another"
	if behind.Admit(who, true) == nil {
		t.Error("another data directory is let in in its place")
	}
}

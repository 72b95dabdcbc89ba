package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A cluster goes to the level after the newest, which no release knows, and no server of this release can follow it there.
func TestAClusterIsRaisedToTheNextLevel(t *testing.T) {
	next := replica.Levels{Oldest: core.OldestLevel, Newest: core.NewestLevel + 1}
	s := newSite(t, nil)
	s.levels = map[string]replica.Levels{"n1": next, "n2": next}
	s.begin("n1", "n2", "n3")
	at := func(level core.Level) {
		t.Helper()
		for name, e := range s.engines {
			until(t, fmt.Sprintf("%s is at level %d", name, level), func() bool { return e.Level() == level })
		}
	}
	at(core.NewestLevel)
	if _, err := s.leader().Upgrade(t.Context()); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("with a server that does not know it: %v", err)
	}
	s.stop("n3")
	s.levels["n3"] = next
	s.mustStart("n3", Config{})
	s.retry(func() error {
		_, err := s.leader().Upgrade(t.Context())
		return err
	})
	at(next.Newest)
	grant := func(path string) {
		s.retry(func() error {
			_, err := s.follower().Do(t.Context(), &core.Acquire{Namespace: "default", Resource: path, ID: "id-" + path, Holder: "h", TTL: time.Hour})
			return err
		})
	}
	grant("r")
	for _, name := range []string{"n1", "n3"} {
		s.stop(name)
		delete(s.levels, name)
		if _, err := s.start(name, s.listen(name), Config{}); err == nil || !strings.Contains(err.Error(), "use the newer version that wrote it") {
			t.Errorf("%s with this version: %v", name, err)
		}
		s.levels[name] = next
		s.mustStart(name, Config{})
	}
	at(next.Newest)
	grant("s")
}

// No server does what no release has: without a test, it knows what its program knows.
func TestAServerKnowsTheLevelsOfItsProgram(t *testing.T) {
	if got := (Config{}).withDefaults().known(); got != (replica.Levels{Oldest: core.OldestLevel, Newest: core.NewestLevel}) {
		t.Errorf("it knows %v", got)
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
	if d.Format != storage.FormatAt(core.NewestLevel) {
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

// Levels were counted anew for the first release: what builds from before it wrote would be misread, and is refused.
func TestDataFromBeforeTheFirstReleaseAreRefused(t *testing.T) {
	for format := 1; format < storage.FormatAt(core.OldestLevel); format++ {
		dir := t.TempDir()
		write(t, filepath.Join(dir, formatFile), fmt.Appendf(nil, `{"product":"leasehold","format":%d,"node":1,"name":"d","cluster":"c","begun":true}`, format))
		want := fmt.Sprintf("%s has format %d, which only builds from before the first release wrote, and this version does not read: "+
			"start with an empty directory, or use the build that wrote it", dir, format)
		if _, err := Start(t.Context(), Config{Dir: dir, SegmentBytes: testSegment}); err == nil || err.Error() != want {
			t.Errorf("format %d: %v", format, err)
		}
		if _, err := storage.Check(dir); err == nil || err.Error() != want {
			t.Errorf("a check of format %d: %v", format, err)
		}
	}
}

package cluster

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

func TestCompareSums(t *testing.T) {
	voters := func(n int) *replica.Roster {
		r := &replica.Roster{}
		for id := range uint64(n) {
			r.Members = append(r.Members, replica.Member{ID: id + 1, Name: string('a' + rune(id)), Voter: true})
		}
		return r
	}
	learner := voters(4)
	learner.Members[3].Voter = false
	for _, c := range []struct {
		name     string
		roster   *replica.Roster
		hashes   map[uint64]string
		majority string
		odd      string
	}{
		{"all alike", voters(3), map[uint64]string{1: "x", 2: "x", 3: "x"}, "x", ""},
		{"one differs", voters(3), map[uint64]string{1: "x", 2: "y", 3: "x"}, "x", "b"},
		{"one is away", voters(3), map[uint64]string{1: "x", 3: "x"}, "x", ""},
		{"one is away, and two differ", voters(3), map[uint64]string{1: "x", 3: "y"}, "", "a c"},
		{"two differ", voters(2), map[uint64]string{1: "x", 2: "y"}, "", "a b"},
		{"two and two", voters(4), map[uint64]string{1: "x", 2: "y", 3: "x", 4: "y"}, "", "a b c d"},
		{"all differ", voters(3), map[uint64]string{1: "x", 2: "y", 3: "z"}, "", "a b c"},
		{"alone", voters(3), map[uint64]string{2: "x"}, "", ""},
		{"two of five", voters(5), map[uint64]string{1: "x", 2: "x"}, "", ""},
		{"a learner differs", learner, map[uint64]string{1: "x", 2: "x", 4: "y"}, "x", "d"},
		{"a learner has no vote", learner, map[uint64]string{1: "x", 4: "x"}, "", ""},
	} {
		got := compareSums(c.roster, c.hashes)
		if odd := strings.Join(names(got.odd), " "); got.majority != c.majority || odd != c.odd {
			t.Errorf("%s: majority %q, odd %q", c.name, got.majority, odd)
		}
	}
}

// spoil changes the state of a server of an even id alone: it puts a record there that is in nobody's log.
func (s *site) spoil() *Engine {
	s.t.Helper()
	for _, e := range s.engines {
		if e.id%2 == 0 {
			if err := e.inspect(s.t.Context(), func(n *replica.Node) {
				state := n.State()
				_, err := state.Apply(state.Now(), state.Wall(), []core.Command{&core.PutRecord{Namespace: "default", Path: "odd"}})
				if err != nil {
					s.t.Error(err)
				}
			}); err != nil {
				s.t.Fatal(err)
			}
			return e
		}
	}
	s.t.Fatal("no server has an even id")
	return nil
}

func TestAServerThatDiffersStopsAndIsRefused(t *testing.T) {
	inVirtualTime(t, aServerThatDiffersStopsAndIsRefused)
}

func aServerThatDiffersStopsAndIsRefused(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.do(s.leader(), lease("before", time.Hour))
	time.Sleep(3 * sumEvery / 2)
	for name, e := range s.engines {
		if odd := e.sums.odd.Load(); odd == nil || len(*odd) != 0 || isClosed(e.failed) {
			t.Fatalf("%s found %v", name, odd)
		}
	}
	bad := s.spoil()
	s.do(s.leader(), lease("after", time.Hour))
	time.Sleep(5 * sumEvery / 2) // compared twice, the second time without it
	if !isClosed(bad.failed) {
		t.Fatal("it goes on")
	}
	for _, text := range []string{"the state of this server was another than that of the majority", "leasehold cluster remove NAME", "empty data directory"} {
		if !strings.Contains(bad.Failure().Error(), text) {
			t.Errorf("it does not say %q: %v", text, bad.Failure())
		}
	}
	name := bad.self.Name
	s.stop(name)
	for other, e := range s.engines {
		if isClosed(e.failed) {
			t.Errorf("%s stopped too: %v", other, e.Failure())
		}
		if o := s.outlook(e); !slices.Equal(o.Differ, []string{name}) {
			t.Errorf("%s says that %q differ", other, o.Differ)
		}
	}
	s.do(s.leader(), lease("later", time.Hour))
	if _, err := s.start(name, s.listen(name), Config{}); err == nil || !strings.Contains(err.Error(), "its data are no longer used") {
		t.Errorf("it starts again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dirs[name], "diverged")); err != nil {
		t.Error(err)
	}
}

func TestWithoutAMajorityNobodyStops(t *testing.T) { inVirtualTime(t, withoutAMajorityNobodyStops) }

func withoutAMajorityNobodyStops(t *testing.T, s *site) {
	s.begin("n1", "n2")
	s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	time.Sleep(3 * sumEvery / 2)
	for name, e := range s.engines {
		if isClosed(e.failed) {
			t.Errorf("%s stopped: %v", name, e.Failure())
		}
		if o := s.outlook(e); !slices.Equal(o.Differ, []string{"n1", "n2"}) {
			t.Errorf("%s says that %q differ", name, o.Differ)
		}
	}
	s.do(s.leader(), lease("later", time.Hour))
}

// Two versions may write the same state in two ways, should somebody have made that mistake:
// it costs nobody a server.
func TestVersionsThatDifferStopNobody(t *testing.T) { inVirtualTime(t, versionsThatDifferStopNobody) }

func versionsThatDifferStopNobody(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	bad := s.spoil()
	s.stop("n3")
	s.mustStart("n3", Config{Version: "other"})
	s.do(s.leader(), lease("r", time.Hour))
	time.Sleep(3 * sumEvery / 2)
	if isClosed(bad.failed) {
		t.Errorf("it stopped: %v", bad.Failure())
	}
	var o engine.Outlook
	if o = s.outlook(bad); !slices.Equal(o.Differ, []string{bad.self.Name}) {
		t.Errorf("it says that %q differ", o.Differ)
	}
}

// What one comparison costs a server, in the background.
func BenchmarkSum(b *testing.B) {
	state := core.New()
	const leases = 100_000
	for i := range leases {
		c := &core.Acquire{Namespace: "default", Resource: fmt.Sprintf("bench/resource-%07d", i), ID: fmt.Sprintf("lease-%07d", i), Holder: "worker-7", TTL: time.Hour}
		if _, err := state.Apply(core.Time(i+1), int64(i+1), []core.Command{c}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := wire.WriteSnapshot(sha256.New(), state.Freeze()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/leases, "ns/lease")
}

// snapshots waits until a server has a snapshot that holds what was done before, also if others did it.
func (s *site) snapshots(e *Engine) {
	s.t.Helper()
	s.reaches(e, "before")
	was := uint64(0)
	next := func(n *replica.Node) { was = n.Statistics().Snapshots; n.SnapshotNext() }
	if err := e.inspect(s.t.Context(), next); err != nil {
		s.t.Fatal(err)
	}
	s.reaches(e, "next")
	s.await("a snapshot of "+e.self.Name, func() bool {
		taken := uint64(0)
		_ = e.inspect(s.t.Context(), func(n *replica.Node) { taken = n.Statistics().Snapshots })
		return taken > was
	})
	// A start reads only what the log on the disk says is committed, which is written with the entries that follow.
	s.reaches(e, "after")
	s.reaches(e, "later")
}

// reaches adds an entry to the log, and waits until a server has applied it.
func (s *site) reaches(e *Engine, when string) {
	s.t.Helper()
	path := when + "-the-snapshot-of-" + e.self.Name
	s.do(s.leader(), lease(path, time.Hour))
	s.await(path, func() bool { return s.holdsStale(e, path) })
}

// holdsStale reports whether a resource is held, as far as a server has come by itself.
func (s *site) holdsStale(e *Engine, path string) (held bool) {
	_ = e.inspect(s.t.Context(), func(n *replica.Node) {
		held = len(n.State().View(0).Status("default", path, 0).Holders) > 0
	})
	return held
}

// A server whose snapshot holds another state finds out before it answers anybody.
func TestASnapshotThatDiffersIsNeverServed(t *testing.T) {
	inVirtualTime(t, aSnapshotThatDiffersIsNeverServed)
}

func aSnapshotThatDiffersIsNeverServed(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	bad := s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshots(bad)
	name := bad.self.Name
	s.stop(name)
	_, err := s.start(name, s.listen(name), Config{})
	if err == nil || !strings.Contains(err.Error(), "the state of this server was another than that of the majority") {
		t.Fatalf("it serves: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dirs[name], "diverged")); err != nil {
		t.Error(err)
	}
	s.do(s.leader(), lease("later", time.Hour))
}

// Servers that start together compare their states with each other: nobody has been serving.
func TestAllStartAgainFromSnapshots(t *testing.T) { inVirtualTime(t, allStartAgainFromSnapshots) }

func allStartAgainFromSnapshots(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.do(s.leader(), lease("r", time.Hour))
	for _, name := range []string{"n1", "n2", "n3"} {
		s.snapshots(s.engines[name])
	}
	s.restart("n1", "n2", "n3")
	if n := s.holds(s.leader(), "r"); n != 1 {
		t.Errorf("%d hold it", n)
	}
	// Two of them are a majority.
	s.stop("n2")
	if took := s.restart("n1", "n3"); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	s.do(s.leader(), lease("later", time.Hour))
}

// restart stops servers, and starts all of them at once where they were. It returns how long that took.
func (s *site) restart(names ...string) time.Duration {
	s.t.Helper()
	took, errs := s.startTogether(Config{}, names...)
	for name, err := range errs {
		if err != nil {
			s.t.Fatalf("%s: %v", name, err)
		}
	}
	return took
}

// Two that differ cannot tell who is right: they serve, and say so.
func TestTwoThatDifferStartAgain(t *testing.T) { inVirtualTime(t, twoThatDifferStartAgain) }

func twoThatDifferStartAgain(t *testing.T, s *site) {
	s.begin("n1", "n2")
	bad := s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshots(bad)
	s.restart("n1", "n2")
	for name, e := range s.engines {
		if w := e.Warnings(); len(w) != 1 || !strings.Contains(w[0], "the states of the servers differ (n1, n2)") {
			t.Errorf("%s warns %q", name, w)
		}
	}
	s.do(s.leader(), lease("later", time.Hour))
}

// One that is alone has nobody to be compared with.
func TestOneStartsAgainFromItsSnapshot(t *testing.T) { inVirtualTime(t, oneStartsAgainFromItsSnapshot) }

func oneStartsAgainFromItsSnapshot(t *testing.T, s *site) {
	s.begin("n1")
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshots(s.engines["n1"])
	s.restart("n1")
	if n := s.holds(s.leader(), "r"); n != 1 {
		t.Errorf("%d hold it", n)
	}
}

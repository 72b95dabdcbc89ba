package cluster

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A server that never serves again is worse than one that serves what nobody could check: whoever is there in the end
// serves, however the servers start.

// startTogether stops servers and starts them at once where they were, and returns how long it took until all of them
// served, or were refused.
func (s *site) startTogether(c Config, names ...string) (took time.Duration, errs map[string]error) {
	s.t.Helper()
	listeners, errs := map[string]net.Listener{}, map[string]error{}
	for _, name := range names {
		address := s.engines[name].network.mesh.Self().Address
		s.stop(name)
		listeners[name] = s.wires.listen(address)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	s.context = ctx
	defer func() { s.context = nil }()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, name := range names {
		all.Go(func() {
			_, err := s.start(name, listeners[name], c)
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	all.Wait()
	return time.Since(began), errs
}

// mustServe wants servers to serve within a time, and to grant something.
func (s *site) mustServe(within time.Duration, names ...string) {
	s.t.Helper()
	if took := s.restart(names...); took > within {
		s.t.Errorf("%v served after %v", names, took)
	}
	s.do(s.leader(), lease("later", time.Hour))
}

func (s *site) snapshotsOfAll() {
	for _, name := range sortedKeys(s.engines) {
		s.snapshots(s.engines[name])
	}
}

// One of three is gone for ever, and the other two differ: nobody can tell who is right.
func TestTwoOfThreeThatDifferServe(t *testing.T) { inVirtualTime(t, twoOfThreeThatDifferServe) }

func twoOfThreeThatDifferServe(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshotsOfAll()
	s.stop("n3")
	s.mustServe(3*time.Minute, "n1", "n2")
}

// Two of five are gone for ever, and one of the rest differs: three agree by no majority.
func TestThreeOfFiveOfWhichOneDiffersServe(t *testing.T) {
	inVirtualTime(t, threeOfFiveOfWhichOneDiffersServe)
}

func threeOfFiveOfWhichOneDiffersServe(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3", "n4", "n5")
	s.do(s.leader(), lease("r", time.Hour))
	s.stop("n4")
	s.spoil()
	s.do(s.leader(), lease("r2", time.Hour))
	s.snapshotsOfAll()
	s.stop("n5")
	s.mustServe(3*time.Minute, "n1", "n2", "n3")
}

// The others do not wait for the one that differs, even if it leads first.
func TestOneOfThreeThatDiffersKeepsNobodyBack(t *testing.T) {
	inVirtualTime(t, oneOfThreeThatDiffersKeepsNobodyBack)
}

func oneOfThreeThatDiffersKeepsNobodyBack(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	bad := s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshotsOfAll()
	_, errs := s.startTogether(Config{}, "n1", "n2", "n3")
	for name, err := range errs {
		if (err != nil) != (name == bad.self.Name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dirs[bad.self.Name], "diverged")); err != nil {
		t.Error(err)
	}
	s.do(s.leader(), lease("later", time.Hour))
	s.mustServe(20*time.Second, "n1", "n3")
}

// All are restarted one by one with another version, while one of them differs.
func TestAnUpgradeOfServersThatDifferServes(t *testing.T) {
	inVirtualTime(t, anUpgradeOfServersThatDifferServes)
}

func anUpgradeOfServersThatDifferServes(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshotsOfAll()
	for _, name := range []string{"n2", "n1", "n3"} {
		_, errs := s.startTogether(Config{Version: "other"}, name)
		if errs[name] != nil {
			t.Fatal(errs[name])
		}
		s.do(s.leader(), lease("after-"+name, time.Hour))
	}
}

// One that was alone takes in another by a snapshot, and both start again.
func TestOneThatJoinsByASnapshotServes(t *testing.T) { inVirtualTime(t, oneThatJoinsByASnapshotServes) }

func oneThatJoinsByASnapshotServes(t *testing.T, s *site) {
	s.begin("n1")
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshots(s.engines["n1"])
	s.mustServe(5*time.Second, "n1")
	s.join("n2", s.engines["n1"])
	s.mustServe(15*time.Second, "n1", "n2")
	s.snapshotsOfAll()
	s.mustServe(15*time.Second, "n1")
	s.mustServe(15*time.Second, "n2")
	s.mustServe(15*time.Second, "n1", "n2")
	s.join("n3", s.engines["n2"])
	s.await("three votes", func() bool { return len(s.leader().network.current().Voters()) == 3 })
	s.stop("n1")
	s.mustServe(15*time.Second, "n2", "n3")
}

// One that waited for the others does not serve because the first of them alone cannot tell.
func TestOneThatDiffersAndWaitedIsRefused(t *testing.T) {
	inVirtualTime(t, oneThatDiffersAndWaitedIsRefused)
}

func oneThatDiffersAndWaitedIsRefused(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	bad := s.spoil()
	s.do(s.leader(), lease("r", time.Hour))
	s.snapshotsOfAll()
	addresses := map[string]string{}
	for _, name := range []string{"n1", "n2", "n3"} {
		addresses[name] = s.engines[name].network.mesh.Self().Address
	}
	for name := range addresses {
		s.stop(name)
	}
	var all sync.WaitGroup
	for name, after := range map[string]time.Duration{"n2": 0, "n1": time.Minute, "n3": time.Minute + 10*time.Second} {
		all.Go(func() {
			time.Sleep(after)
			_, err := s.start(name, s.wires.listen(addresses[name]), Config{})
			if (err != nil) != (name == bad.self.Name) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
}

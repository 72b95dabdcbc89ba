package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// putLarge puts a value and names it, however often the lead changes.
func (s *site) putLarge(e *Engine, path string, b []byte) *leasehold.Large {
	s.t.Helper()
	var large leasehold.Large
	s.retry(func() (err error) {
		large, err = e.PutValue(s.t.Context(), bytes.NewReader(b))
		return err
	})
	s.do(e, &core.PutRecord{Namespace: "default", Path: path, Large: &large, Keep: 20})
	return &large
}

// allHave waits until every server that runs has a value, with the right bytes.
func (s *site) allHave(large *leasehold.Large) {
	s.t.Helper()
	for _, name := range sortedKeys(s.engines) {
		e := s.engines[name]
		s.await(name+" having a value", func() bool { return e.values.Has(*large) })
		if err := e.values.Verify(*large); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	}
	synctest.Wait() // a second copy of it may be on its way, and would come back after it is removed
}

func aState(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "state %d ", n), 50000) }

func TestServersShareLargeValues(t *testing.T) { inVirtualTime(t, serversShareLargeValues) }

func serversShareLargeValues(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	s.allHave(s.putLarge(s.leader(), "state/a", aState(1)))
	s.allHave(s.putLarge(s.follower(), "state/a", aState(2)))

	// One that was away gets what it missed, from whoever has it.
	away := s.follower()
	name := ""
	for n, e := range s.engines {
		if e == away {
			name = n
		}
	}
	s.stop(name)
	missed := s.putLarge(s.leader(), "state/b", aState(3))
	e := s.mustStart(name, Config{})
	s.allHave(missed)
	if got, err := readValue(t, e, missed); err != nil || !bytes.Equal(got, aState(3)) {
		t.Errorf("it reads %d bytes: %v", len(got), err)
	}

	// A damaged file is not given out, and is replaced by another server's.
	if err := flipBit(e.values.File(missed.SHA256)); err != nil {
		t.Fatal(err)
	}
	if got, err := readValue(t, e, missed); err == nil && !bytes.Equal(got, aState(3)) {
		t.Error("it gave out damaged bytes")
	}
	s.allHave(missed)

	// One that is gone is fetched while somebody wants to read it.
	if err := os.Remove(e.values.File(missed.SHA256)); err != nil {
		t.Fatal(err)
	}
	if got, err := readValue(t, e, missed); err != nil || !bytes.Equal(got, aState(3)) {
		t.Errorf("it reads %d bytes: %v", len(got), err)
	}
}

func TestAValueThatIsOutOfReachIsNotGone(t *testing.T) {
	inVirtualTime(t, aValueThatIsOutOfReachIsNotGone)
}

func aValueThatIsOutOfReachIsNotGone(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	large := s.putLarge(s.leader(), "state/a", aState(1))
	s.allHave(large)
	for _, e := range s.engines {
		if err := os.Remove(e.values.File(large.SHA256)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readValue(t, s.follower(), large); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a value that is named, and that nobody gives, is read: %v", err)
	}
	never := *large
	never.SHA256[0]++
	if _, err := readValue(t, s.follower(), &never); !errors.Is(err, leasehold.ErrNotFound) {
		t.Errorf("a value that nothing names is read: %v", err)
	}
}

func TestACallerThatLeavesTakesNoValueFromOthers(t *testing.T) {
	inVirtualTime(t, aCallerThatLeavesTakesNoValueFromOthers)
}

func aCallerThatLeavesTakesNoValueFromOthers(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	large := s.putLarge(s.leader(), "state/a", aState(1))
	s.allHave(large)
	e := s.follower()
	if err := os.Remove(e.values.File(large.SHA256)); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := e.fetch(gone, *large); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("who left is told %v", err)
	}
	synctest.Wait() // no time passes: the server does not look through its values
	if !e.values.Has(*large) {
		t.Error("the transfer ended with the caller that began it")
	}
}

// A slow server gets what a majority already has when it asks for it. Until then no more is on its way there than it
// can take: else the values of one busy caller would use up its places for connections, and the memory of who sends.
func TestASlowServerIsNotSentEverythingAtOnce(t *testing.T) {
	inVirtualTime(t, aSlowServerIsNotSentEverythingAtOnce)
}

func aSlowServerIsNotSentEverythingAtOnce(t *testing.T, s *site) {
	var slow string
	var open, most atomic.Int64
	s.dial = func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := s.wires.dial(ctx, address)
		if err != nil || address != slow {
			return conn, err
		}
		most.Store(max(most.Load(), open.Add(1)))
		nowhere, _ := net.Pipe()
		return &stalling{conn, nowhere, sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
	s.begin("a", "b", "c")
	s.retry(func() error { _, err := s.engines["a"].Transfer(t.Context(), "a"); return err })
	slow = s.engines["c"].self.Peer
	for i := range 4 * maxGiving {
		if _, err := s.engines["a"].PutValue(t.Context(), bytes.NewReader(aState(i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := most.Load(); n == 0 || n > maxGiving {
		t.Errorf("%d values were on their way to the slow server at a time", n)
	}
}

// A stalling connection carries no large file.
type stalling struct {
	net.Conn
	nowhere net.Conn
	closed  func()
}

func (c *stalling) Write(b []byte) (int, error) {
	if len(b) > 4<<10 {
		return c.nowhere.Write(b)
	}
	return c.Conn.Write(b)
}

func (c *stalling) SetWriteDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetWriteDeadline(t), c.nowhere.SetWriteDeadline(t))
}

func (c *stalling) Close() error {
	c.closed()
	return errors.Join(c.Conn.Close(), c.nowhere.Close())
}

func TestALargeValueNeedsAMajority(t *testing.T) { inVirtualTime(t, aLargeValueNeedsAMajority) }

func aLargeValueNeedsAMajority(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	s.leader()
	s.stop("b")
	s.putLarge(s.leader(), "state/a", aState(1))
	s.stop("c")
	if _, err := s.engines["a"].PutValue(t.Context(), bytes.NewReader(aState(2))); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("one of three: %v", err)
	}
	s.mustStart("b", Config{})
	s.putLarge(s.leader(), "state/a", aState(2))
}

func TestANewServerGetsItsVoteWithAllLargeValues(t *testing.T) {
	inVirtualTime(t, aNewServerGetsItsVoteWithAllLargeValues)
}

func aNewServerGetsItsVoteWithAllLargeValues(t *testing.T, s *site) {
	s.config.SnapshotEvery = 4 << 10
	s.begin("a")
	first := s.leader()
	var all []*leasehold.Large
	for i := range 30 {
		all = append(all, s.putLarge(first, fmt.Sprint("state/", i%3), aState(i)))
	}
	for i := range 100 { // so that there is a snapshot, and the log begins after it
		s.do(first, &core.PutRecord{Namespace: "default", Path: fmt.Sprint("small/", i), Value: string(make([]byte, 200))})
	}
	joined := s.join("b", first)
	s.await("a vote", func() bool {
		m, ok := first.network.current().Named("b")
		return ok && m.Voter
	})
	for i, large := range all {
		if err := joined.values.Verify(*large); err != nil {
			t.Errorf("value %d: %v", i, err)
		}
	}
	var installed uint64
	if err := joined.inspect(t.Context(), func(n *replica.Node) { installed = n.Statistics().Installed }); err != nil || installed == 0 {
		t.Errorf("no snapshot was installed: %v", err)
	}
	if joined.fetcher.lacks() {
		t.Error("it has a vote, and does not know whether it has everything")
	}
	// What nothing names goes on all of them.
	s.do(first, &core.PutRecord{Namespace: "default", Path: "state/0", Value: "x", Keep: leasehold.KeepNone})
	time.Sleep(storage.ValueIdle + 2*storage.SweepEvery)
	for _, e := range s.engines {
		if e.values.Has(*all[0]) || !e.values.Has(*all[1]) {
			t.Errorf("server %d has %v and %v", e.id, e.values.Has(*all[0]), e.values.Has(*all[1]))
		}
	}
}

func TestAPutThatCanNotComeToAMajorityEnds(t *testing.T) {
	inVirtualTime(t, aPutThatCanNotComeToAMajorityEnds)
}

// Of five servers, one takes the value and three do not: the fourth answer is the last one.
func aPutThatCanNotComeToAMajorityEnds(t *testing.T, s *site) {
	s.begin("a")
	results := make(chan error, 4)
	for _, err := range []error{nil, errMessage, errMessage, errMessage} {
		results <- err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.leader().enough(ctx, results, 2, 4)
	if !errors.Is(err, leasehold.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("it waits on: %v", err)
	}
}

func TestOnlyWhatAMajorityHasCanBeNamed(t *testing.T) {
	inVirtualTime(t, onlyWhatAMajorityHasCanBeNamed)
}

func onlyWhatAMajorityHasCanBeNamed(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	leader := s.leader()
	// Its bytes came to one server, and no further.
	large, err := leader.values.Put(t.Context(), bytes.NewReader(aState(1)))
	if err != nil {
		t.Fatal(err)
	}
	s.do(leader, &core.PutRecord{Namespace: "default", Path: "state/a", Large: &large})
	have := 0
	for _, e := range s.engines {
		if e.values.Has(large) {
			have++
		}
	}
	if have < 2 {
		t.Errorf("%d of 3 servers have what was named", have)
	}
	// The others forget what nobody names in time; here it stays for who comes late.
	late := s.putOnly(leader, aState(2))
	time.Sleep(storage.ValueIdle - 2*storage.SweepEvery)
	if err := leader.nameable(t.Context(), &core.PutRecord{Namespace: "default", Path: "state/b", Large: &late}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * storage.SweepEvery)
	have = 0
	for _, e := range s.engines {
		if e.values.Has(late) {
			have++
		}
	}
	if have < 2 {
		t.Errorf("%d of 3 servers have what is about to be named", have)
	}
}

// putOnly puts a value that nothing names yet.
func (s *site) putOnly(e *Engine, b []byte) (large leasehold.Large) {
	s.t.Helper()
	s.retry(func() (err error) {
		large, err = e.PutValue(s.t.Context(), bytes.NewReader(b))
		return err
	})
	return large
}

func TestAValueThatIsNamedIsNotCalledGone(t *testing.T) {
	inVirtualTime(t, aValueThatIsNamedIsNotCalledGone)
}

func aValueThatIsNamedIsNotCalledGone(t *testing.T, s *site) {
	s.begin("a", "b", "c")
	large := s.putLarge(s.leader(), "state/a", aState(1))
	s.allHave(large)
	for _, e := range s.engines {
		if err := os.Remove(e.values.File(large.SHA256)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readValue(t, s.follower(), large); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("all copies of it are lost: %v", err)
	}
	if err := s.follower().values.Nameable(*large); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("it is named again: %v", err)
	}
}

package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/enginetest"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// patienceFor is how long a test waits for what must come.
const patienceFor = 60 * time.Second

// A wires is a network in memory: it works in virtual time too.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*wireEnd
}

type wireEnd struct {
	wires   *wires
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
	open    []net.Conn
}

type wireAddress string

func (a wireAddress) Network() string { return "wire" }
func (a wireAddress) String() string  { return string(a) }

func newWires() *wires { return &wires{listeners: map[string]*wireEnd{}} }

func (w *wires) listen(address string) net.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &wireEnd{wires: w, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	w.listeners[address] = l
	return l
}

func (w *wires) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	l := w.listeners[address]
	w.mu.Unlock()
	if l == nil {
		return nil, errors.New("nobody is there")
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		w.mu.Lock()
		defer w.mu.Unlock()
		l.open = append(l.open, there)
		return here, nil
	case <-l.closed:
		return nil, errors.New("nobody is there any more")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut lets nothing through to an address any more, until join is called.
func (w *wires) cut(address string) (join func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.listeners[address]
	delete(w.listeners, address)
	for _, conn := range l.open {
		_ = conn.Close()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.listeners[address] = l
	}
}

func (l *wireEnd) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *wireEnd) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *wireEnd) Addr() net.Addr { return wireAddress(l.address) }

// A site is a cluster of real engines.
type site struct {
	t       *testing.T
	wires   *wires // nil: real sockets
	config  Config // of all of them
	members []replica.Member
	dirs    map[string]string
	logs    map[string]*lockedLog

	ports   int
	dial    func(context.Context, string) (net.Conn, error) // nil: by the wires
	context context.Context                                 // of starts; nil: the test's
	secure  func(name string) func() *tls.Config            // nil: traffic is plain
	valves  map[string]*valve                               // before the log of a server, by name
	levels  map[string]replica.Levels                       // that the program of a server knows, by name; none: this program's

	mu      sync.Mutex
	engines map[string]*Engine
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t *testing.T, w *wires) *site {
	s := &site{t: t, wires: w, dirs: map[string]string{}, logs: map[string]*lockedLog{}, engines: map[string]*Engine{}}
	t.TempDir() // what is registered first is cleaned up last: directories go after the servers have ended
	t.Cleanup(s.close)
	return s
}

// begin starts servers that begin together.
func (s *site) begin(names ...string) {
	s.t.Helper()
	listeners := map[string]net.Listener{}
	for _, name := range names {
		listeners[name] = s.listen(name)
		s.members = append(s.members, replica.Member{Name: name, Peer: listeners[name].Addr().String()})
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if _, err := s.start(name, listeners[name], Config{InitialCluster: s.members}); err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	if s.t.Failed() {
		s.tellLogs()
		s.t.FailNow()
	}
}

func (s *site) tellLogs() {
	for name, log := range s.logs {
		s.t.Logf("%s:\n%s", name, log)
	}
}

func (s *site) listen(name string) net.Listener {
	s.t.Helper()
	if s.wires != nil {
		s.ports++
		return s.wires.listen(fmt.Sprintf("%s:%d", name, s.ports))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// start starts a server, with the data that it had under its name.
func (s *site) start(name string, listener net.Listener, c Config) (*Engine, error) {
	s.mu.Lock()
	if s.dirs[name] == "" {
		s.dirs[name] = s.t.TempDir()
	}
	if s.logs[name] == nil {
		s.logs[name] = &lockedLog{}
	}
	c.Dir, c.Log = s.dirs[name], slog.New(slog.NewTextHandler(s.logs[name], nil))
	s.mu.Unlock()
	c.Name, c.peerListener, c.Insecure, c.SegmentBytes = name, listener, true, testSegment
	c.levels = s.levels[name]
	c.SnapshotEvery, c.JournalBytes, c.MinFree = s.config.SnapshotEvery, s.config.JournalBytes, s.config.MinFree
	if v := s.valves[name]; v != nil {
		c.beforeWrite = v.pass
	}
	if s.secure != nil && c.PeerTLS == nil {
		c.PeerTLS = s.secure(name)
	}
	if s.wires != nil {
		c.peerDial, c.Clock = s.wires.dial, newTestClock(name)
		if s.dial != nil {
			c.peerDial = s.dial
		}
	}
	ctx := s.t.Context()
	if s.context != nil {
		ctx = s.context
	}
	e, err := Start(ctx, c)
	if err == nil {
		s.mu.Lock()
		s.engines[name] = e
		s.mu.Unlock()
	}
	return e, err
}

func (s *site) mustStart(name string, c Config) *Engine {
	s.t.Helper()
	e, err := s.start(name, s.listen(name), c)
	if err != nil {
		s.tellLogs()
		s.t.Fatalf("%s: %v", name, err)
	}
	return e
}

// join prepares a place for a server, and has it join there. Nobody answers at the first address.
func (s *site) join(name string, by *Engine) *Engine {
	s.t.Helper()
	listener := s.listen(name)
	s.retry(func() error {
		_, err := by.Add(s.t.Context(), name, listener.Addr().String())
		return err
	})
	e, err := s.start(name, listener, Config{Join: []string{"127.0.0.1:1", by.network.mesh.Self().Address}})
	if err != nil {
		s.tellLogs()
		s.t.Fatalf("%s: %v", name, err)
	}
	return e
}

// stop stops a server.
func (s *site) stop(name string) {
	s.t.Helper()
	s.mu.Lock()
	e := s.engines[name]
	delete(s.engines, name)
	s.mu.Unlock()
	if err := e.Close(); err != nil {
		s.t.Errorf("%s: close: %v", name, err)
	}
	if err := e.node.State().Check(); err != nil {
		s.t.Errorf("%s: state: %v", name, err)
	}
}

func (s *site) close() {
	for name := range s.engines {
		s.stop(name)
	}
	if s.t.Failed() {
		s.tellLogs()
	}
}

// leader returns the server that leads.
func (s *site) leader() *Engine {
	s.t.Helper()
	var leader *Engine
	s.await("a leader", func() bool {
		for _, e := range s.engines {
			if e.view.Load().serving {
				leader = e
				return true
			}
		}
		return false
	})
	return leader
}

// follower returns one that does not lead.
func (s *site) follower() *Engine {
	s.t.Helper()
	leader := s.leader()
	for _, name := range sortedKeys(s.engines) {
		if s.engines[name] != leader {
			return s.engines[name]
		}
	}
	s.t.Fatal("there is no follower")
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	names := []string{}
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patienceFor); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.tellLogs()
			s.t.Fatalf("%s did not come within %v", what, patienceFor)
		}
	}
}

// holds tells how many hold a resource, as a server has it.
func (s *site) holds(e *Engine, path string) (n int) {
	s.t.Helper()
	s.retry(func() error {
		return e.Read(s.t.Context(), func(v core.View) { n = len(v.Status("default", path, 0).Holders) })
	})
	return n
}

func (s *site) outlook(e *Engine) engine.Outlook {
	s.t.Helper()
	o, err := e.Outlook(s.t.Context())
	if err != nil {
		s.t.Fatalf("outlook: %v", err)
	}
	return o
}

// inVirtualTime runs a test of several servers where time passes only when nobody has
// anything to do: a slow machine changes nothing.
func inVirtualTime(t *testing.T, test func(t *testing.T, s *site)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newWires())
		defer s.close()
		test(t, s)
	})
}

// do has a command done, however often the lead changes. It has to be one that may be
// done again.
func (s *site) do(e *Engine, c core.Command) {
	s.t.Helper()
	s.retry(func() error { _, err := e.Do(s.t.Context(), c); return err })
}

// retry tries until there is no error, or one that does not pass by itself.
func (s *site) retry(try func() error) {
	s.t.Helper()
	for end := time.Now().Add(patienceFor); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		passes := errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided) || errors.Is(err, leasehold.ErrRefused)
		if !passes || time.Now().After(end) {
			s.tellLogs()
			s.t.Fatal(err)
		}
	}
}

// A face is one server of several, which all end with it.
type face struct {
	*Engine
	site *site
}

func (f face) Close() error { f.site.close(); return nil }

// contractOf runs the contract on one of three servers, but for some cases.
func contractOf(t *testing.T, choose func(*site) *Engine, without ...string) {
	enginetest.Run(t, func(t *testing.T) enginetest.Engine {
		s := newSite(t, newWires())
		s.config = Config{JournalBytes: audit.MinBytes}
		s.begin("n1", "n2", "n3")
		return face{choose(s), s}
	}, without...)
}

func TestContractThroughTheLeaderOfThree(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all")
	}
	contractOf(t, (*site).leader)
}

func TestContractThroughAFollowerOfThree(t *testing.T) {
	var long []string
	if testing.Short() { // three servers send each other heartbeats for many minutes of virtual time
		long = []string{"a large value is kept while something names it", "a watch of what is not known says that it is gone"}
	}
	contractOf(t, (*site).follower, long...)
}

func TestThreeServersAreOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin("n1", "n2", "n3")
	for _, name := range sortedKeys(s.engines) {
		s.do(s.engines[name], lease("of-"+name, time.Minute))
		for _, other := range s.engines {
			if s.holds(other, "of-"+name) != 1 {
				t.Errorf("what %s was granted is not known to all", name)
			}
		}
	}
	var o engine.Outlook
	s.await("an outlook on all of them", func() bool {
		o = s.outlook(s.follower())
		return o.Leader != 0 && !slices.ContainsFunc(o.Servers, func(server engine.Server) bool {
			return !server.Reachable || server.Silent < 0 || server.Applied == 0
		})
	})
	if len(o.Servers) != 3 || o.Cluster == "" || o.Term == 0 {
		t.Fatalf("outlook %+v", o)
	}
	for i, server := range o.Servers {
		if server.ID != uint64(i+1) || server.Name != fmt.Sprint("n", i+1) || !server.Voter {
			t.Errorf("server %+v", server)
		}
	}
}

func TestTheLeadIsHandedOverBeforeAServerStops(t *testing.T) {
	inVirtualTime(t, theLeadIsHandedOverBeforeAServerStops)
}

func theLeadIsHandedOverBeforeAServerStops(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.do(s.leader(), lease("r", time.Minute))
	old := s.leader()
	s.stop(old.self.Name)
	if old.node.Leads() {
		t.Fatal("it stopped while it led")
	}
	if s.holds(s.leader(), "r") != 1 {
		t.Fatal("the lease is gone")
	}
	s.do(s.follower(), lease("r2", time.Minute))
}

// An address may be another after a restart: the others hear of it.
func TestAServerComesBackAtAnotherAddress(t *testing.T) {
	inVirtualTime(t, aServerComesBackAtAnotherAddress)
}

func aServerComesBackAtAnotherAddress(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	for _, name := range []string{"n2", "n3", "n1"} {
		s.do(s.leader(), lease("before-"+name, time.Minute))
		s.stop(name)
		s.do(s.leader(), lease("without-"+name, time.Minute))
		e := s.mustStart(name, Config{InitialCluster: s.members, ClientAdvertise: "http://" + name})
		if s.holds(e, "before-"+name) != 1 || s.holds(e, "without-"+name) != 1 {
			t.Fatalf("%s does not know all", name)
		}
		s.await("the new address", func() bool {
			m, _ := s.leader().network.current().Named(name)
			return m.Peer == e.self.Peer && m.Client == "http://"+name
		})
	}
	if !strings.Contains(s.logs["n1"].String(), "ignored=[initial-cluster]") {
		t.Error("nothing was said of the flag")
	}
}

func TestAServerThatLostItsDataIsRefusedInItsPlace(t *testing.T) {
	inVirtualTime(t, aServerThatLostItsDataIsRefusedInItsPlace)
}

func aServerThatLostItsDataIsRefusedInItsPlace(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	for _, name := range []string{"n1", "n3"} {
		s.stop(name)
		kept := s.dirs[name]
		s.dirs[name] = t.TempDir()
		listener := s.listen(name)
		members := slices.Clone(s.members)
		for i, m := range members {
			if m.Name == name {
				members[i].Peer = listener.Addr().String()
			}
		}
		_, err := s.start(name, listener, Config{InitialCluster: members})
		if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "another data directory") {
			t.Fatalf("%s without its data: %v", name, err)
		}
		s.dirs[name] = kept
		s.mustStart(name, Config{})
	}
}

// Who copies the identity of a server, and not its log, is no better.
func TestAnotherDirectoryIsRefusedByTheMesh(t *testing.T) {
	inVirtualTime(t, anotherDirectoryIsRefusedByTheMesh)
}

func anotherDirectoryIsRefusedByTheMesh(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.stop("n3")
	dir, err := storage.OpenDir(s.dirs["n3"], true)
	if err != nil {
		t.Fatal(err)
	}
	dir.Name = "another"
	if err := dir.Save(); err != nil {
		t.Fatal(err)
	}
	dir.Close()
	e, err := s.start("n3", s.listen("n3"), Config{})
	if err == nil {
		select {
		case <-e.Failed():
			err = e.Failure()
		case <-time.After(patienceFor):
		}
	}
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "without its data") {
		t.Fatalf("it goes on: %v", err)
	}
}

func TestServersThatWereToldDifferentListsDoNotBegin(t *testing.T) {
	inVirtualTime(t, serversThatWereToldDifferentListsDoNotBegin)
}

func serversThatWereToldDifferentListsDoNotBegin(t *testing.T, s *site) {
	l1, l2 := s.listen("n1"), s.listen("n2")
	one := []replica.Member{{Name: "n1", Peer: l1.Addr().String()}, {Name: "n2", Peer: l2.Addr().String()}}
	two := append(slices.Clone(one), replica.Member{Name: "n3", Peer: "127.0.0.1:1"})
	errs := make(chan error, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name     string
		listener net.Listener
		list     []replica.Member
	}{{"n1", l1, one}, {"n2", l2, two}} {
		go func() {
			_, err := Start(ctx, Config{Dir: t.TempDir(), Name: c.name, peerListener: c.listener, peerDial: s.wires.dial, InitialCluster: c.list, SegmentBytes: testSegment})
			errs <- err
		}()
	}
	if err := <-errs; !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "the same list") {
		t.Error(err)
	}
	cancel() // the other may have missed it, and waits for a server that is gone
	if err := <-errs; err == nil {
		t.Error("the other began alone")
	}
}

func TestOneGrowsToThreeAndKeepsItsLeases(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	one := startAt(t, t.TempDir(), Config{Clock: SystemClock()}) // without an address for others
	for i := range 100 {
		mustDo(t, one, lease(fmt.Sprint("r", i), time.Hour))
	}
	s.dirs["n1"] = one.network.dir.Path
	closed(t, one)

	first := s.mustStart("n1", Config{})
	s.await("its own address", func() bool { return first.network.current().Members[0].Peer != "" })
	for _, name := range []string{"n2", "n3"} {
		s.join(name, first)
	}
	s.await("three votes", func() bool { return len(s.leader().network.current().Voters()) == 3 })
	s.stop("n1")
	for i := range 100 {
		if s.holds(s.leader(), fmt.Sprint("r", i)) != 1 {
			t.Fatalf("lease %d is gone", i)
		}
	}
	s.do(s.follower(), lease("new", time.Minute))
}

func TestAServerJoinsUnderLoadByASnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.config = Config{SnapshotEvery: 64 << 10}
	s.begin("n1", "n2", "n3")
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	granted, through := make([]int, 4), s.engines["n2"]
	for worker := range granted {
		load.Go(func() {
			for ctx.Err() == nil {
				c := lease(fmt.Sprintf("w%d/%d", worker, granted[worker]), time.Hour)
				if _, err := through.Do(t.Context(), c); err == nil {
					granted[worker]++
				}
			}
		})
	}
	for _, e := range s.engines { // whichever will lead then
		s.await("snapshots", func() bool {
			var snapshots uint64
			_ = e.inspect(t.Context(), func(n *replica.Node) { snapshots = n.Statistics().Snapshots })
			return snapshots > 2
		})
	}
	n4 := s.join("n4", s.engines["n2"])
	s.await("its vote", func() bool { m, _ := n4.network.current().Named("n4"); return m.Voter })
	stop()
	load.Wait()
	var installed uint64
	if err := n4.inspect(t.Context(), func(n *replica.Node) { installed = n.Statistics().Installed }); err != nil || installed == 0 {
		t.Errorf("no snapshot was installed, %v", err)
	}
	total := 0
	for worker, n := range granted {
		total += n
		if n > 0 && s.holds(n4, fmt.Sprintf("w%d/%d", worker, n-1)) != 1 {
			t.Errorf("the last lease of worker %d is gone", worker)
		}
	}
	t.Logf("%d leases were granted meanwhile", total)
	var sums engine.Sums
	s.await("four sums", func() bool {
		s.retry(func() (err error) { sums, err = n4.Sums(t.Context()); return err })
		return len(sums.Of) == 4 && !slices.ContainsFunc(sums.Of, func(sum engine.Sum) bool { return sum.Hash == "" })
	})
	for _, sum := range sums.Of {
		if sum.Hash != sums.Of[0].Hash {
			t.Errorf("sums differ: %+v", sums)
		}
	}
}

func TestARemovedServerSaysSoAndStops(t *testing.T) { inVirtualTime(t, aRemovedServerSaysSoAndStops) }

func aRemovedServerSaysSoAndStops(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	if err := s.engines["n1"].Remove(t.Context(), "nobody"); !errors.Is(err, leasehold.ErrNotFound) {
		t.Fatal(err)
	}
	gone := s.engines["n3"]
	s.retry(func() error { return s.engines["n1"].Remove(t.Context(), "n3") })
	s.mustFail(gone, "removed")
	if o := s.outlook(s.engines["n1"]); len(o.Servers) != 2 {
		t.Fatalf("outlook %+v", o)
	}
	s.do(s.engines["n2"], lease("r", time.Minute))
}

// mustFail waits for a server to fail with a word.
func (s *site) mustFail(e *Engine, word string) {
	s.t.Helper()
	select {
	case <-e.Failed():
	case <-time.After(patienceFor):
		s.tellLogs()
		s.t.Fatal("it goes on")
	}
	if err := e.Failure(); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), word) {
		s.t.Fatalf("it failed with %v", err)
	}
}

func TestTheLeaderCanBeRemoved(t *testing.T) { inVirtualTime(t, theLeaderCanBeRemoved) }

func theLeaderCanBeRemoved(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	leader := s.leader()
	if err := leader.Remove(t.Context(), leader.self.Name); err != nil {
		t.Fatal(err)
	}
	s.mustFail(leader, "removed")
	delete(s.engines, leader.self.Name)
	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	s.do(s.leader(), lease("r", time.Minute))
}

func TestAServerThatWasRemovedWhileAwayIsTold(t *testing.T) {
	inVirtualTime(t, aServerThatWasRemovedWhileAwayIsTold)
}

func aServerThatWasRemovedWhileAwayIsTold(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.stop("n3")
	if err := s.leader().Remove(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	e, err := s.start("n3", s.listen("n3"), Config{})
	if err == nil {
		s.mustFail(e, "removed")
	} else if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "removed") {
		t.Fatal(err)
	}
	// Its name is free for another one, which has another id.
	s.dirs["n3"] = t.TempDir()
	again := s.join("n3", s.leader())
	if again.id != 4 {
		t.Fatalf("it has the id %d", again.id)
	}
}

func TestAPlaceCanBePreparedForAServer(t *testing.T) { inVirtualTime(t, aPlaceCanBePreparedForAServer) }

func aPlaceCanBePreparedForAServer(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	listener := s.listen("n4")
	address := listener.Addr().String()
	server, err := s.follower().Add(t.Context(), "n4", address)
	if err != nil || server.ID != 4 || server.Voter {
		t.Fatalf("%+v, %v", server, err)
	}
	if again, err := s.leader().Add(t.Context(), "n4", address); err != nil || again.ID != 4 {
		t.Fatalf("%+v, %v", again, err)
	}
	if err := s.leader().Promote(t.Context(), "n4"); !errors.Is(err, leasehold.ErrRefused) {
		t.Fatalf("it got a vote without being there: %v", err)
	}
	e, err := s.start("n4", listener, Config{Join: []string{s.members[0].Peer}})
	if err != nil || e.id != 4 {
		t.Fatalf("%v", err)
	}
	s.await("its vote", func() bool { m, _ := s.leader().network.current().Named("n4"); return m.Voter && m.Dir != "" })
	place := s.listen("n5")
	if _, err := s.leader().Add(t.Context(), "n5", place.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.start("n5", place, Config{Join: []string{s.members[0].Peer}, PeerAdvertise: address}); !errors.Is(err, leasehold.ErrRefused) {
		t.Fatalf("another server took its address: %v", err)
	}
}

func TestTheLeadCanBeGivenAway(t *testing.T) { inVirtualTime(t, theLeadCanBeGivenAway) }

func theLeadCanBeGivenAway(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	for _, to := range []string{"n1", "n2", "n3", "n3"} {
		name, err := s.engines["n2"].Transfer(t.Context(), to)
		if err != nil || name != to {
			t.Fatalf("%q leads and not %s: %v", name, to, err)
		}
		s.await("its lead", func() bool { return s.engines[to].view.Load().serving })
	}
	name, err := s.engines["n1"].Transfer(t.Context(), "")
	if err != nil || name == "n3" || name == "" {
		t.Fatalf("%q leads: %v", name, err)
	}
	if _, err := s.engines["n1"].Transfer(t.Context(), "nobody"); !errors.Is(err, leasehold.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestPlainTrafficStaysOnTheMachine(t *testing.T) {
	_, err := Start(t.Context(), Config{Dir: t.TempDir(), PeerListen: "127.0.0.1:0", SegmentBytes: testSegment})
	if !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("plain without being told so: %v", err)
	}
	_, err = Start(t.Context(), Config{Dir: t.TempDir(), PeerListen: "0.0.0.0:0", Insecure: true, SegmentBytes: testSegment})
	if !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("plain on all addresses: %v", err)
	}
}

// An election is a pause for callers, and not an error.
func TestCallersOutlastAnElection(t *testing.T) { inVirtualTime(t, callersOutlastAnElection) }

func callersOutlastAnElection(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	e := s.follower()
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for worker := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(time.Millisecond) // else no time would pass
				if err := e.Read(t.Context(), func(core.View) {}); err != nil {
					t.Errorf("a reader was told of it: %v", err)
				}
				_, err := e.Do(t.Context(), lease(fmt.Sprintf("w%d/%d", worker, i), time.Hour))
				if err != nil && !errors.Is(err, leasehold.ErrUndecided) && !strings.Contains(err.Error(), "leader changed") {
					t.Errorf("a caller whose command was on its way to nobody was told of it: %v", err)
				}
			}
		})
	}
	for range 3 {
		if _, err := s.leader().Transfer(t.Context(), ""); err != nil {
			t.Errorf("transfer: %v", err)
		}
	}
	stop()
	load.Wait()
}

// Who cannot reach the leader that it knows has not sent it anything: its callers wait for
// the next one.
func TestCallersOfAServerThatLostItsLeaderWait(t *testing.T) {
	inVirtualTime(t, callersOfAServerThatLostItsLeaderWait)
}

func callersOfAServerThatLostItsLeaderWait(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	leader, e := s.leader(), s.follower()
	leader.network.mesh.Close() // nothing comes from it any more, and nothing gets there
	s.await("a lost connection", func() bool { return !e.network.mesh.Peers()[leader.id].Connected })
	if e.view.Load().leader != leader.id {
		t.Fatal("it heard of another leader before it could be asked")
	}
	var all sync.WaitGroup
	began := time.Now()
	for i := range 100 {
		all.Go(func() {
			_, err := e.Do(t.Context(), lease(fmt.Sprint("r", i), time.Hour))
			// The other two may stand against each other, and again, for longer than callers wait.
			waited := time.Since(began) >= (replica.LeaderTicks-1)*replica.TickEvery
			if err != nil && !(waited && errors.Is(err, leasehold.ErrUnavailable)) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestALeaderWithoutRoomLetsAnotherLead(t *testing.T) {
	inVirtualTime(t, aLeaderWithoutRoomLetsAnotherLead)
}

func aLeaderWithoutRoomLetsAnotherLead(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	full := s.leader()
	full.disk.SetMinFree(1 << 62)
	s.await("another leader", func() bool { return s.leader() != full })
	s.do(full, lease("r", time.Minute)) // it passes it on to one that has room
}

// An authority certifies servers.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}}
	der, key := a.sign(a.cert)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.key = cert, key
	return a
}

func (a *authority) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key // its own
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// certify returns what a server of a name is given.
func (a *authority) certify(name string) func() *tls.Config {
	a.t.Helper()
	der, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: roots}
	return func() *tls.Config { return c }
}

func TestServersKnowEachOtherByTheirCertificates(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ours := newAuthority(t)
	s.secure = ours.certify
	s.begin("n1", "n2", "n3")
	s.do(s.follower(), lease("r", time.Hour))
	to := []string{s.members[0].Peer}
	s.join("n4", s.engines["n1"])

	_, err := s.start("n5", s.listen("n5"), Config{Join: to, PeerTLS: ours.certify("n4")})
	if err == nil || !strings.Contains(err.Error(), `the certificate of server "n5" is for ["n4"]`) {
		t.Errorf("with the certificate of another: %v", err)
	}

	var stop context.CancelFunc
	s.context, stop = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.start("n6", s.listen("n6"), Config{Join: to, PeerTLS: newAuthority(t).certify("n6")})
		ended <- err
	}()
	s.await("words about the authority", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.logs["n6"] != nil && strings.Contains(s.logs["n6"].String(), "unknown authority")
	})
	stop()
	if err := <-ended; err == nil {
		t.Error("with the certificate of another authority it was let in")
	}
}

// A state is larger than anything that is held of it on its way.
func TestALargeSnapshotArrives(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.config = Config{SnapshotEvery: 4 << 20}
	one := s.mustStart("n1", Config{})
	value := strings.Repeat("v", 60<<10)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := range 32 {
				s.do(one, &core.PutRecord{Namespace: "default", Path: fmt.Sprintf("p%d/%d", worker, i), Value: value})
			}
		})
	}
	all.Wait()
	s.await("a snapshot", func() bool {
		var n uint64
		_ = one.inspect(t.Context(), func(node *replica.Node) { n = node.Statistics().Snapshots })
		return n > 0
	})
	two := s.join("n2", one)
	var installed uint64
	var size int64
	if err := two.inspect(t.Context(), func(node *replica.Node) { installed = node.Statistics().Installed }); err != nil || installed == 0 {
		t.Fatalf("no snapshot was installed, %v", err)
	}
	files, err := os.ReadDir(two.network.dir.Snapshots())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size = max(size, info.Size())
		}
		if strings.HasSuffix(f.Name(), ".part") {
			t.Errorf("%s was left", f.Name())
		}
	}
	t.Logf("a snapshot of %d bytes arrived", size)
	for worker := range 16 {
		s.retry(func() (err error) {
			failed := two.Read(t.Context(), func(v core.View) {
				if r, refused := v.Record("default", fmt.Sprintf("p%d/31", worker), 0); refused != nil || r.Value != value {
					t.Errorf("record p%d/31 is not there: %v", worker, refused)
				}
			})
			return failed
		})
	}
}

func TestASnapshotThatFailedIsSentAgain(t *testing.T) {
	inVirtualTime(t, aSnapshotThatFailedIsSentAgain)
}

func aSnapshotThatFailedIsSentAgain(t *testing.T, s *site) {
	s.config = Config{SnapshotEvery: 4 << 10}
	s.begin("n1", "n2", "n3")
	s.retry(func() error { _, err := s.engines["n1"].Transfer(t.Context(), "n1"); return err })
	behind := s.engines["n3"]
	join := s.wires.cut(behind.self.Peer)
	for i := range 200 {
		s.do(s.engines["n1"], lease(fmt.Sprint("r", i), time.Hour))
	}
	_, end, err := behind.network.receiving.begin(t.Context(), math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	join()
	s.await("a failure", func() bool { return strings.Contains(s.logs["n1"].String(), "a snapshot could not be sent") })
	end()
	if s.holds(behind, "r199") != 1 {
		t.Fatal("it does not know all")
	}
	if !strings.Contains(s.logs["n1"].String(), "a snapshot was sent") {
		t.Fatal("it knows all without a snapshot")
	}
}

// A leader that lost the lead, and whose link is slow, does not keep the next one's snapshot out.
func TestALaterLeadersSnapshotComesFirst(t *testing.T) {
	inVirtualTime(t, aLaterLeadersSnapshotComesFirst)
}

func aLaterLeadersSnapshotComesFirst(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	n := s.engines["n3"].network
	send := func(from, term uint64, body io.Reader) error {
		head, err := proto.Marshal(&raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: &from, Term: &term,
			Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1 << 40)), Term: &term}}})
		if err != nil {
			t.Fatal(err)
		}
		return n.Stream(t.Context(), peer.Identity{ID: from}, streamSnapshot, head, body)
	}
	earlier := make(chan error, 1)
	go func() { earlier <- send(1, 100, io.LimitReader(slowly{}, 600)) }()
	time.Sleep(time.Minute)
	for _, again := range []uint64{99, 100} {
		if err := send(1, again, strings.NewReader("a state")); err == nil || !strings.Contains(err.Error(), "another snapshot") {
			t.Errorf("one of term %d: %v", again, err)
		}
	}
	if err := send(2, 101, strings.NewReader("a state")); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("the next leader's is not looked at: %v", err)
	}
	if err := <-earlier; !errors.Is(err, errLaterLeader) {
		t.Errorf("the earlier one: %v", err)
	}
}

// slowly has a byte each second.
type slowly struct{}

func (slowly) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return 1, nil
}

func TestFiguresOfTheConnections(t *testing.T) { inVirtualTime(t, figuresOfTheConnections) }

func figuresOfTheConnections(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	s.stop("n3")
	e := s.engines["n1"]
	r := prometheus.NewRegistry()
	e.network.watch(r)
	s.await("a lost connection", func() bool { return !e.network.mesh.Peers()[3].Connected })
	got := map[string]float64{}
	s.await("the lag", func() bool {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		_, ok := got["leasehold_peer_lag_entries n2"]
		return ok
	})
	if got["leasehold_peer_connected n2"] != 1 || got["leasehold_peer_connected n3"] != 0 {
		t.Fatalf("%v", got)
	}
}

//go:build linux

package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/zookeeper"
)

// quiet makes the driver say nothing.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// driver returns a connection of the driver's own.
func driver(t testing.TB, servers ...string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func acquire(t testing.TB, s store.Store, r store.Request) store.Grant {
	t.Helper()
	grant, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("%s was not granted to %s: %v", r.Resource, r.ID, err)
	}
	return grant
}

func renew(t testing.TB, s store.Store, resource, id string) store.Renewal {
	t.Helper()
	renewals, err := s.Renew(t.Context(), store.Ref{Resource: resource, ID: id})
	if err != nil {
		t.Fatalf("renewal of %s: %v", id, err)
	}
	return renewals[0]
}

func release(t testing.TB, s store.Store, resource, id string) {
	t.Helper()
	err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: resource, ID: id}}})
	if err != nil {
		t.Fatalf("release of %s: %v", id, err)
	}
}

// gone waits until a resource has no node any more, and returns the moment before that was seen.
func gone(t testing.TB, conn *zk.Conn, resource string) time.Time {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		at := time.Now()
		children, _, err := conn.Children("/leasehold/default/l/" + resource)
		if errors.Is(err, zk.ErrNoNode) || err == nil && len(children) == 0 {
			return at
		}
	}
	t.Fatal("the node is still there")
	return time.Time{}
}

// long leaves a test out unless all are wanted.
func long(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("left out: it needs an ensemble of three (-full)")
	}
}

// three starts an ensemble. It returns a link to a follower, and a connection to the leader.
func three(t *testing.T) (*peer.ZooKeeperMember, *peer.Proxy, *zk.Conn) {
	t.Helper()
	long(t)
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Members: 3, Tick: time.Second})
	follower := z.Follower()
	return follower, peer.StartProxy(t, follower.Address), driver(t, z.Leader().Address)
}

const ttl = 4 * time.Second

// A follower dies right after it answered a renewal, before it told the leader of it. What the holder
// was told to rely on is less than its TTL, and is kept.
func TestAFollowerDiesAfterItsAnswer(t *testing.T) {
	follower, link, leader := three(t)
	s := open(t, link.Address)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	link.Hang() // nothing is heard of the session
	time.Sleep(ttl * 6 / 10)
	link.Forward()
	sent := time.Now()
	renewal := renew(t, s, "r", "a")
	follower.Kill()
	if renewal.Err != nil || renewal.Ended != nil {
		t.Fatalf("the renewal: %+v", renewal)
	}
	ended := gone(t, leader, "r")
	t.Logf("%v of %v remained, and it was gone after %v", renewal.Remaining, ttl, ended.Sub(sent))
	if early := sent.Add(renewal.Remaining).Sub(ended); early > 0 {
		t.Errorf("it was gone %v before what the holder was told", early)
	}
	if renewal.Remaining > ttl/2 {
		t.Errorf("%v remain, counted from a write that nothing confirms", renewal.Remaining)
	}
}

// The creation of a session counts without a second write: the leader itself begins to count then.
func TestAFollowerDiesAfterAnAcquire(t *testing.T) {
	follower, link, leader := three(t)
	s := open(t, link.Address)
	sent := time.Now()
	grant := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	follower.Kill()
	ended := gone(t, leader, "r")
	t.Logf("%v of %v remained, and it was gone after %v", grant.Remaining, ttl, ended.Sub(sent))
	if early := sent.Add(grant.Remaining).Sub(ended); early > 0 {
		t.Errorf("it was gone %v before what the holder was told", early)
	}
	if grant.Remaining < ttl/2 {
		t.Errorf("%v remain of a new lease", grant.Remaining)
	}
}

// A follower that is cut off from the leader answers pings for a while. Renewals are not answered.
func TestAFollowerIsCutOff(t *testing.T) {
	follower, link, leader := three(t)
	s := open(t, link.Address)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	time.Sleep(ttl / 3)
	sent := time.Now()
	last := renew(t, s, "r", "a")
	deadline := sent.Add(last.Remaining)
	follower.Cut()
	defer follower.Heal()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for time.Now().Before(sent.Add(2 * ttl)) {
			ctx, cancel := context.WithTimeout(context.Background(), ttl/3)
			asked := time.Now()
			renewals, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"})
			cancel()
			if err == nil && renewals[0].Err == nil && renewals[0].Ended == nil {
				deadline = asked.Add(renewals[0].Remaining)
			}
			time.Sleep(ttl / 20)
		}
	}()
	ended := gone(t, leader, "r")
	<-done
	t.Logf("the node was gone after %v", ended.Sub(sent))
	if early := deadline.Sub(ended); early > 0 {
		t.Errorf("it was gone %v before what the holder was told", early)
	}
}

// The leader is killed: leases, tokens and the queue go on.
func TestTheLeaderIsKilled(t *testing.T) {
	long(t)
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Members: 3, Tick: time.Second})
	s, other := open(t, z.Addresses()...), open(t, z.Addresses()...)
	request := store.Request{Resource: "r", ID: "a", TTL: 15 * time.Second}
	grant := acquire(t, s, request)
	leader := z.Leader()
	leader.Kill()
	renewal := store.Renewal{Err: errors.New("not renewed")}
	for began := time.Now(); renewal.Err != nil && time.Since(began) < request.TTL; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if renewals, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"}); err == nil {
			renewal = renewals[0]
		}
		cancel()
		time.Sleep(50 * time.Millisecond)
	}
	if renewal.Err != nil || renewal.Ended != nil || renewal.Token != grant.Token {
		t.Fatalf("the renewal after the failover: %+v", renewal)
	}
	_, err := other.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: request.TTL})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("somebody else after the failover: %v", err)
	}
	release(t, s, "r", "a")
	if next := acquire(t, other, store.Request{Resource: "r", ID: "c", TTL: request.TTL}); next.Token <= grant.Token {
		t.Errorf("token %d after %d", next.Token, grant.Token)
	}
	leader.Restart()
}

// A holder's program goes on without renewals. The driver's pings must not keep its lease.
func TestPingsAreNotRenewals(t *testing.T) {
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	s := open(t, z.Addresses()...)
	sent := time.Now()
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: 2 * time.Second})
	ended := gone(t, driver(t, z.Addresses()...), "r").Sub(sent)
	if ended < 2*time.Second || ended > 3*time.Second {
		t.Errorf("a lease of 2 s that nobody renewed was gone after %v", ended)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil || renewal.Ended.How != leasehold.ByTTL {
		t.Errorf("the renewal afterwards: %+v", renewal)
	}
}

func TestTokensThatAreTooSmall(t *testing.T) {
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	s := open(t, z.Addresses()...)
	request := store.Request{Resource: "r", ID: "a", TTL: ttl, Floor: 1 << 40}
	if _, err := s.Acquire(t.Context(), request); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("a floor above the zxid: %v", err)
	}
	if r, err := s.Read(t.Context(), "r"); err != nil || r.State != leasehold.Available {
		t.Errorf("what was refused is held: %+v, %v", r, err)
	}
}

// Only the process that acquired a lease can renew it.
func TestAnotherProcessCannotRenew(t *testing.T) {
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	s, other := open(t, z.Addresses()...), open(t, z.Addresses()...)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	if renewal := renew(t, other, "r", "a"); !errors.Is(renewal.Err, leasehold.ErrRefused) {
		t.Errorf("the renewal by another process: %+v", renewal)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Err != nil || renewal.Ended != nil {
		t.Errorf("the renewal by its own: %+v", renewal)
	}
}

func TestTheURL(t *testing.T) {
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	host := z.Members[0].Address
	s, err := store.Open(t.Context(), "zookeeper://"+host+","+host+"/a/prefix", store.Settings{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if f := s.Features(); f.MinTTL != 2*time.Second || f.MaxTTL != 20*time.Second {
		t.Errorf("with ticks of a second, TTLs are %v to %v", f.MinTTL, f.MaxTTL)
	}
	acquire(t, s, store.Request{Resource: "reports/nightly", ID: "a", Holder: "ann", TTL: ttl})
	children, _, err := driver(t, host).Children("/a/prefix/ns/l/reports%2fnightly")
	if err != nil || len(children) != 1 || children[0] != "a#0000000000" {
		t.Errorf("the nodes are %v, %v", children, err)
	}
	for _, address := range []string{
		"zookeeper://" + host + "?timeout=3", "zookeeper://," + host, "zookeeper:///prefix",
		"zookeeper://ann:secret@" + host + "?acl=all",
	} {
		if _, err := store.Open(t.Context(), address, store.Settings{}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = zookeeper.Open(ctx, zookeeper.Config{Servers: []string{"127.0.0.1:1"}})
	if !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("nobody answers: %v", err)
	}
}

//go:build linux

package zookeeper_test

import (
	"flag"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
	"github.com/leasehold/leasehold/store/zookeeper"
)

var full = flag.Bool("full", false, "run the long tests, too")

func open(t testing.TB, servers ...string) *zookeeper.Store {
	t.Helper()
	s, err := zookeeper.Open(t.Context(), zookeeper.Config{Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The whole suite, on one real server, and one that is killed.
func TestStore(t *testing.T) { storetest.Run(t, suite(t)) }

func suite(t testing.TB) storetest.Config {
	t.Helper()
	server := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	killed := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	member := killed.Members[0]
	return storetest.Config{
		Open:  func(t testing.TB) store.Store { return open(t, server.Addresses()...) },
		Apart: func(t testing.TB) store.Store { return open(t, killed.Addresses()...) },
		Full:  *full,
		TTL:   3 * time.Second,
		Late:  time.Second, MassLate: 2 * time.Second,
		// After a renewal less than the TTL remains, by the time since the renewal before it.
		Slack: 1500 * time.Millisecond,
		Omit: map[string]string{
			"tokens/floor": "ZooKeeper refuses a floor above its zxid: TestTokensThatAreTooSmall",
		},
		Restart: func(testing.TB) { member.Stop(); member.Restart() },
		Kill:    func(testing.TB) { member.Kill(); member.Restart() },
		Hang: func(testing.TB) func() {
			member.Pause()
			return member.Resume
		},
		Denied: func(t testing.TB) store.Store { return stranger(t, server.Members[0].Address) },
	}
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, suite(b)) }

// stranger opens a namespace of somebody else.
func stranger(t testing.TB, address string) store.Store {
	t.Helper()
	owner, err := store.Open(t.Context(), "zookeeper://ann:secret@"+address+"/private", store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close() }()
	if _, err := owner.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "zookeeper://"+address+"/private", store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

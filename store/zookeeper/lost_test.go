//go:build linux

package zookeeper_test

import (
	"context"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// The answer to a create is lost, and the client connects to a follower which has not heard yet that the
// node was created: no majority has it. A client that asks again must wait for that, and not create a second node.
// Nobody would delete the first one for as long as the program runs.
func TestACreateThatIsNotCommittedYet(t *testing.T) {
	for name, then := range map[string]func(testing.TB, store.Store){
		"asked again": func(t testing.TB, s store.Store) {
			acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: 10 * time.Second})
			release(t, s, "r", "a")
		},
		"released": func(t testing.TB, s store.Store) { release(t, s, "r", "a") },
	} {
		t.Run(name, func(t *testing.T) { undecidedCreate(t, then) })
	}
}

func undecidedCreate(t *testing.T, then func(testing.TB, store.Store)) {
	long(t)
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Members: 4, Tick: time.Second})
	leader, follower := z.Leader(), z.Follower()
	link := peer.StartProxy(t, leader.Address)
	s, other := open(t, link.Address), open(t, follower.Address)
	request := store.Request{Resource: "r", ID: sameShard("a"), TTL: 10 * time.Second}
	acquire(t, s, request) // makes the parents
	release(t, s, request.Resource, request.ID)

	for _, m := range z.Members {
		if m != leader && m != follower {
			m.Pause()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	request.ID = "a"
	if _, err := s.Acquire(ctx, request); !store.Transient(err) {
		t.Fatalf("without a majority: %v", err)
	}
	link.Redirect(follower.Address)
	resumed := make(chan struct{})
	defer func() { <-resumed }()
	time.AfterFunc(1500*time.Millisecond, func() {
		defer close(resumed)
		for _, m := range z.Members {
			m.Resume()
		}
	})
	then(t, s)
	began := time.Now()
	grant := acquire(t, other, store.Request{Resource: "r", ID: "b", TTL: 10 * time.Second, Wait: 8 * time.Second})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d was granted only %v after the release", grant.Token, took)
	}
}

// sameShard returns another id whose mark has the same parent.
func sameShard(id string) string {
	shard := func(id string) uint32 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(id))
		return h.Sum32() % 256
	}
	for other := id + "-"; ; other += "-" {
		if shard(other) == shard(id) {
			return other
		}
	}
}

// An ensemble that had two million elections is at zxid 2^53. Others could not hold such a token exactly.
func TestTokensThatAreTooLarge(t *testing.T) {
	long(t)
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Members: 3, Tick: time.Second})
	for _, m := range z.Members {
		m.Stop()
	}
	for _, m := range z.Members {
		for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
			if err := os.WriteFile(filepath.Join(m.Dir(), "version-2", name), []byte("2097152"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m.Restart()
	}
	z.Leader()
	s := open(t, z.Addresses()...)
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: ttl})
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "2^53") {
		t.Errorf("at 2^53: %v", err)
	}
	if r, err := s.Read(t.Context(), "r"); err != nil || r.State != leasehold.Available {
		t.Errorf("what was refused is held: %+v, %v", r, err)
	}
}

//go:build linux

package zookeeper_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// renewIn renews within a time, and returns until when the lease may be relied on; zero: no answer.
func renewIn(t testing.TB, s store.Store, within time.Duration) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	sent := time.Now()
	renewals, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"})
	if err != nil || renewals[0].Err != nil {
		return time.Time{}
	}
	if renewals[0].Ended != nil {
		t.Fatalf("it has ended: %+v", renewals[0].Ended)
	}
	return sent.Add(renewals[0].Remaining)
}

// The member that a holder is connected to falls silent, and another one serves. The holder gets there before
// its lease is over.
func TestASilentMember(t *testing.T) {
	member := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second}).Members[0]
	silent, other := peer.StartProxy(t, member.Address), peer.StartProxy(t, member.Address)
	s := open(t, silent.Address, other.Address)
	const ttl = 6 * time.Second
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	time.Sleep(ttl / 3)
	silent.Hang()
	until := renewIn(t, s, ttl/12)
	silent.Forward()
	if !until.IsZero() { // it is connected to the other one
		silent = other
	}
	if until = renewIn(t, s, ttl/6); until.IsZero() {
		t.Fatal("it was not renewed")
	}
	time.Sleep(ttl / 3) // as the client does
	silent.Hang()
	for began := time.Now(); ; time.Sleep(ttl / 20) {
		if !renewIn(t, s, ttl/6).IsZero() {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the lease could not be renewed for %v", time.Since(began))
		}
	}
}

// A new session is made by another member if the first one that is asked says nothing.
func TestASilentMemberAtTheBeginning(t *testing.T) {
	if !*full {
		t.Skip("left out: it takes half a minute (-full)")
	}
	member := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second}).Members[0]
	silent := peer.StartProxy(t, member.Address)
	silent.Hang()
	const ttl = 6 * time.Second
	for i := range 4 { // the driver begins with any
		id := fmt.Sprint("a", i)
		began := time.Now()
		s := open(t, silent.Address, member.Address)
		acquire(t, s, store.Request{Resource: "r", ID: id, TTL: ttl})
		if took := time.Since(began); took > 8*time.Second {
			t.Fatalf("an acquire took %v", took)
		}
		release(t, s, "r", id)
		_ = s.Close()
	}
}

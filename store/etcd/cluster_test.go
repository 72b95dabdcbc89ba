//go:build linux

package etcd_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// The leader is stopped, another one is elected and grants the lease to the next, and the old leader
// wakes up: it must not confirm the first holder's lease.
func TestALeaderThatWakesUp(t *testing.T) {
	if !*full {
		t.Skip("left out: needs -full")
	}
	t.Parallel()
	cluster := peer.StartEtcd(t, peer.EtcdConfig{Members: 3})
	old := cluster.Leader()
	var others []string
	for _, m := range cluster.Members {
		if m != old {
			others = append(others, m.URL())
		}
	}
	first, second := open(t, old.URL()), open(t, others...)
	const ttl, many = 2 * time.Second, 20
	var refs []store.Ref
	for i := range many {
		ref := store.Ref{Resource: fmt.Sprint("r", i), ID: fmt.Sprint("a", i)}
		refs = append(refs, ref)
		acquire(t, first, store.Request{Resource: ref.Resource, ID: ref.ID, TTL: ttl})
	}
	renewed := time.Now()
	renewals, err := first.Renew(t.Context(), refs...)
	if err != nil || renewals[0].Ended != nil {
		t.Fatal(err, renewals)
	}
	old.Pause()
	for i := range many {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		grant, err := second.Acquire(ctx, store.Request{Resource: fmt.Sprint("r", i), ID: fmt.Sprint("b", i),
			TTL: time.Minute, Wait: time.Minute})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(renewed); took < ttl || grant.Token <= renewals[i].Token {
			t.Errorf("token %d was granted %v after the renewal of token %d", grant.Token, took, renewals[i].Token)
		}
	}
	old.Resume()
	for answered := false; !answered; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		after, err := first.Renew(ctx, refs...)
		cancel()
		if answered = err == nil; !answered {
			continue // the old leader finds out
		}
		for i, renewal := range after {
			if renewal.Ended == nil && renewal.Err == nil {
				t.Errorf("%s was renewed after token %d: %+v", refs[i].ID, renewals[i].Token, renewal)
			}
		}
	}
}

// A follower passes renewals on to the leader, and looks at the keys as they are there.
func TestRenewalsThroughAFollower(t *testing.T) {
	t.Parallel()
	cluster := peer.StartEtcd(t, peer.EtcdConfig{Members: 3})
	leader := cluster.Leader()
	follower := cluster.Members[0]
	if follower == leader {
		follower = cluster.Members[1]
	}
	s, other := open(t, follower.URL()), open(t, leader.URL())
	var refs []store.Ref
	for i := range 100 {
		ref := store.Ref{Resource: fmt.Sprint("r", i), ID: fmt.Sprint("a", i)}
		refs = append(refs, ref)
		acquire(t, s, store.Request{Resource: ref.Resource, ID: ref.ID, TTL: 10 * time.Second})
	}
	if _, err := other.Break(t.Context(), store.BreakRequest{Ref: refs[7], By: "ann", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	renewals, err := s.Renew(t.Context(), refs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("100 renewals through a follower took %v", time.Since(began))
	for i, renewal := range renewals {
		if i == 7 {
			if e := renewal.Ended; e == nil || e.How != leasehold.ByBreak || e.By != "ann" || e.Reason != "test" {
				t.Errorf("the one that was broken: %+v", renewal)
			}
		} else if renewal.Remaining != 10*time.Second {
			t.Errorf("%s: %+v", refs[i].ID, renewal)
		}
	}
}

// A restore that bumps the revision grants larger tokens than before.
func TestABumpedRestore(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	s := open(t, server.Endpoints()...)
	member := server.Members[0]
	old := member.Copy()
	floor := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: 10 * time.Second}).Token
	member.RestoreBumped(old, 1000000)
	s = open(t, server.Endpoints()...)
	grant := acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: 10 * time.Second, Floor: floor})
	if grant.Token <= floor {
		t.Errorf("token %d after %d", grant.Token, floor)
	}
}

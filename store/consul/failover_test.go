//go:build linux

package consul_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A belief is the time for which somebody took the resource for its own.
type belief struct {
	from, to time.Time
	token    leasehold.Token
}

// Contenders at three members, of which the leader is killed and then stopped for a while: no two believe at
// the same time that they hold the resource.
func TestTheLeaderFails(t *testing.T) {
	if !*full {
		t.Skip("left out: needs -full")
	}
	c := peer.StartConsul(t, peer.ConsulConfig{Members: 3, Settings: short.Settings})
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var beliefs []belief
	var all sync.WaitGroup
	for i, address := range c.Addresses() {
		s := open(t, address)
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if b, ok := hold(ctx, s, fmt.Sprintf("m%d-%d", i, n)); ok {
					mu.Lock()
					beliefs = append(beliefs, b)
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(4 * time.Second)
	leader := c.Leader()
	leader.Kill()
	time.Sleep(8 * time.Second)
	leader.Restart()
	time.Sleep(4 * time.Second)
	leader = c.Leader()
	leader.Pause()
	time.Sleep(8 * time.Second)
	leader.Resume()
	time.Sleep(10 * time.Second)
	stop()
	all.Wait()
	slices.SortFunc(beliefs, func(a, b belief) int { return a.from.Compare(b.from) })
	for i := range len(beliefs) - 1 {
		a, b := beliefs[i], beliefs[i+1]
		if b.from.Before(a.to) || b.token <= a.token {
			t.Errorf("token %d was held until %v, and token %d from %v", a.token, a.to, b.token, b.from)
		}
	}
	t.Logf("%d leases", len(beliefs))
	if len(beliefs) < 10 {
		t.Errorf("%d leases were granted", len(beliefs))
	}
}

// hold holds the resource for a second, if it is free.
func hold(ctx context.Context, s store.Store, id string) (b belief, ok bool) {
	const ttl = 2 * time.Second
	within := func(d time.Duration, call func(context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		call(ctx)
	}
	ref := store.Ref{Resource: "r", ID: id}
	within(2*ttl, func(ctx context.Context) {
		sent := time.Now()
		grant, err := s.Acquire(ctx, store.Request{Resource: "r", ID: id, TTL: ttl})
		b = belief{from: time.Now(), to: sent.Add(grant.Remaining), token: grant.Token}
		ok = err == nil && b.from.Before(b.to)
	})
	for range 4 {
		if !ok {
			break
		}
		time.Sleep(ttl / 8)
		within(ttl/2, func(ctx context.Context) {
			sent := time.Now()
			renewals, err := s.Renew(ctx, ref)
			if err == nil && renewals[0].Err == nil && renewals[0].Ended == nil && time.Now().Before(b.to) {
				b.to = sent.Add(renewals[0].Remaining)
			}
		})
	}
	if now := time.Now(); now.Before(b.to) {
		b.to = now
	}
	within(ttl, func(ctx context.Context) {
		_ = s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{ref}, Withdraw: true})
	})
	return b, ok
}

package cluster

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// BenchmarkHandOverChain is eight who want the same resource, hold it for no time, and ask again at once.
func BenchmarkHandOverChain(b *testing.B) {
	e := benchEngine(b)
	spread(b, e, 8, func(i int) error {
		take, give := cycle(0)
		take.Holder, take.Wait = benchNames[i], time.Hour
		_, err := engine.Acquire(benchOrigin, e, take, true)
		if err == nil {
			_, err = e.Do(benchOrigin, give)
		}
		return err
	})
}

// BenchmarkHandOver is the time from a release to the answer of the request that waits for it.
func BenchmarkHandOver(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		e := benchEngine(b)
		handOver(b, e, e)
	})
	b.Run("three/leader", func(b *testing.B) {
		leader, _ := benchThree(b)
		handOver(b, leader, leader)
	})
	b.Run("three/follower", func(b *testing.B) {
		leader, follower := benchThree(b)
		handOver(b, leader, follower)
	})
}

// handOver passes a lease on: releases go to one server, and who waits is at another.
func handOver(b *testing.B, releases, waits *Engine) {
	ctx := context.Background()
	claim := func(n int) *core.Acquire {
		return &core.Acquire{Namespace: "default", Resource: "r", ID: fmt.Sprint("id-", n), Holder: fmt.Sprint("h", n), TTL: time.Hour, Wait: time.Hour}
	}
	if _, err := releases.Do(ctx, claim(0)); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		granted := make(chan error, 1)
		go func() {
			_, err := engine.Acquire(ctx, waits, claim(n), true)
			granted <- err
		}()
		for waiting := 0; waiting == 0; { // and the one that waits has looked once
			_ = waits.Read(ctx, func(v core.View) { waiting = v.Status("default", "r", 0).Waiting })
		}
		time.Sleep(2 * time.Millisecond)
		b.StartTimer()
		if _, err := releases.Do(ctx, &core.Release{Namespace: "default", ID: fmt.Sprint("id-", n-1)}); err != nil {
			b.Fatal(err)
		}
		if err := <-granted; err != nil {
			b.Fatal(err)
		}
	}
}

// benchThree starts three servers on loopback.
func benchThree(b *testing.B) (leader, follower *Engine) {
	b.Helper()
	var members []replica.Member
	var listeners []net.Listener
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		listeners = append(listeners, l)
		members = append(members, replica.Member{Name: fmt.Sprint("n", i), Peer: l.Addr().String()})
	}
	engines := make([]*Engine, 3)
	started := make(chan error, 3)
	for i := range engines {
		go func() (err error) {
			defer func() { started <- err }()
			engines[i], err = Start(context.Background(), Config{
				Name: members[i].Name, Dir: b.TempDir(), peerListener: listeners[i], Insecure: true, InitialCluster: members,
				SegmentBytes: DefaultSegmentBytes, JournalBytes: audit.DefaultBytes,
			})
			return err
		}()
	}
	for range engines {
		if err := <-started; err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		for _, e := range engines {
			_ = e.Close()
		}
	})
	for leader == nil {
		for i, e := range engines {
			if e.view.Load().serving {
				leader, follower = e, engines[(i+1)%3]
			}
		}
		time.Sleep(time.Millisecond)
	}
	return leader, follower
}

package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// BenchmarkAcquireRelease lets the store and redsync take turns on one server, so that whatever else the machine
// does slows both. The figures are the medians of rounds.
func BenchmarkAcquireRelease(b *testing.B) {
	server := peer.StartRedis(b, peer.RedisConfig{})
	s, locks := openAt(b, server.Address), newRedsync(b, server)
	var n atomic.Int64
	ours := func() error {
		i := strconv.FormatInt(n.Add(1), 10)
		r := store.Request{Resource: "r" + i, ID: i, Holder: "h", TTL: 10 * testTTL}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute) // the client's calls have one, and redsync's
		defer cancel()
		if _, err := s.Acquire(ctx, r); err != nil {
			return err
		}
		return s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{{Resource: r.Resource, ID: i}}})
	}
	theirs := func() error {
		m := locks.NewMutex("r"+strconv.FormatInt(n.Add(1), 10), redsync.WithExpiry(time.Minute), redsync.WithTries(1))
		if err := m.LockContext(b.Context()); err != nil {
			return err
		}
		_, err := m.UnlockContext(b.Context())
		return err
	}
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var all [2][]float64
			for b.Loop() {
				for i, cycle := range []func() error{ours, theirs} {
					all[i] = append(all[i], round(b, callers, cycle))
				}
			}
			for i, unit := range []string{"µs/cycle", "redsync-µs/cycle"} {
				slices.Sort(all[i])
				b.ReportMetric(all[i][len(all[i])/2], unit)
			}
		})
	}
}

// round returns how many microseconds a cycle took, by a number of callers at once.
func round(b *testing.B, callers int, cycle func() error) float64 {
	const cycles = 192 // of all callers
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for range cycles / callers {
				if err := cycle(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return float64(time.Since(began).Microseconds()) / cycles
}

const renewed = 100 // at once

func BenchmarkRenew(b *testing.B) {
	server := peer.StartRedis(b, peer.RedisConfig{})
	s := openAt(b, server.Address)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	var refs []store.Ref
	for i := range renewed {
		id := strconv.Itoa(i)
		if _, err := s.Acquire(ctx, store.Request{Resource: "r" + id, ID: id, TTL: 10 * testTTL}); err != nil {
			b.Fatal(err)
		}
		refs = append(refs, store.Ref{Resource: "r" + id, ID: id})
	}
	for b.Loop() {
		if all, err := s.Renew(ctx, refs...); err != nil || all[0].Ended != nil {
			b.Fatal(all, err)
		}
	}
	b.ReportMetric(float64(renewed*b.N)/b.Elapsed().Seconds(), "renewals/s")
}

func BenchmarkRenewRedsync(b *testing.B) {
	locks := newRedsync(b, peer.StartRedis(b, peer.RedisConfig{}))
	var all []*redsync.Mutex
	for i := range renewed {
		m := locks.NewMutex("r"+strconv.Itoa(i), redsync.WithExpiry(10*testTTL), redsync.WithTries(1))
		if err := m.LockContext(b.Context()); err != nil {
			b.Fatal(err)
		}
		all = append(all, m)
	}
	for b.Loop() {
		for _, m := range all {
			if _, err := m.ExtendContext(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(renewed*b.N)/b.Elapsed().Seconds(), "renewals/s")
}

// BenchmarkHandOver measures how long after a release a waiter has the lease.
func BenchmarkHandOver(b *testing.B) {
	server := peer.StartRedis(b, peer.RedisConfig{})
	s := openAt(b, server.Address)
	var total time.Duration
	if _, err := s.Acquire(b.Context(), store.Request{Resource: "r", ID: "0", TTL: 10 * testTTL}); err != nil {
		b.Fatal(err)
	}
	for n := 1; b.Loop(); n++ {
		got := make(chan time.Time)
		go func() {
			_, err := s.Acquire(b.Context(), store.Request{
				Resource: "r", ID: strconv.Itoa(n), TTL: 10 * testTTL, Wait: 10 * testTTL,
			})
			if err != nil {
				b.Error(err)
			}
			got <- time.Now()
		}()
		for waiting := 0; waiting == 0; {
			r, err := s.Read(b.Context(), "r")
			if err != nil {
				b.Fatal(err)
			}
			waiting = r.Waiting
		}
		began := time.Now()
		before := store.Ref{Resource: "r", ID: strconv.Itoa(n - 1)}
		if err := s.Release(b.Context(), store.ReleaseRequest{Leases: []store.Ref{before}}); err != nil {
			b.Fatal(err)
		}
		total += (<-got).Sub(began)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/hand-over")
}

func newRedsync(b *testing.B, server *peer.Redis) *redsync.Redsync {
	client := goredis9.NewClient(&goredis9.Options{Addr: server.Address})
	b.Cleanup(func() { _ = client.Close() })
	return redsync.New(goredis.NewPool(client))
}

// BenchmarkStore has the figures of docs/stores.
func BenchmarkStore(b *testing.B) {
	server := peer.StartRedis(b, peer.RedisConfig{Args: []string{"--appendonly", "yes"}})
	storetest.Benchmark(b, storetest.Config{
		Open: func(t testing.TB) store.Store { return openWith(t, config(server.Address)) }, TTL: testTTL,
	})
}

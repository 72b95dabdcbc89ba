//go:build linux

package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/test/process"
)

// BenchmarkClient says what package client costs its own process, with a server in another one: processor time and
// allocations for each cycle and each renewal. LEASEHOLD_BINARY names the server; without it one is built.
func BenchmarkClient(b *testing.B) {
	binary := os.Getenv("LEASEHOLD_BINARY")
	if binary == "" {
		binary = process.BuildTree(b, b.TempDir())
	}
	server := peer.StartLeasehold(b, peer.LeaseholdConfig{Binary: binary})
	for _, load := range []struct {
		name    string
		clients int
		callers int // of each client
	}{{"1", 1, 1}, {"64", 64, 1}, {"shared", 1, 64}} {
		b.Run("cycle-"+load.name, func(b *testing.B) {
			measure(b, dial(b, server, load.clients), load.callers, func(c *client.Client, name string) func() error {
				return func() error {
					h, err := c.TryAcquire(b.Context(), name)
					if err != nil {
						return err
					}
					return h.Release(b.Context())
				}
			})
		})
		b.Run("renew-"+load.name, func(b *testing.B) {
			measure(b, dial(b, server, load.clients), load.callers, func(c *client.Client, name string) func() error {
				h, err := c.TryAcquire(b.Context(), name, client.Renew(client.RenewByHand()))
				if err != nil {
					b.Fatal(err)
				}
				return func() error { return h.Renew(b.Context()) }
			})
		})
	}
}

func dial(b *testing.B, server *peer.Leasehold, n int) (all []*client.Client) {
	for range n {
		c, err := client.Dial(b.Context(), client.Config{Servers: server.URLs(), Holder: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

// measure has the callers of all clients repeat something, b.N times together.
func measure(b *testing.B, clients []*client.Client, callers int, prepare func(*client.Client, string) func() error) {
	var steps []func() error
	for i := range len(clients) * callers {
		do := prepare(clients[i%len(clients)], fmt.Sprint("bench/", i))
		if err := do(); err != nil { // which opens its session
			b.Fatal(err)
		}
		steps = append(steps, do)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	began := stage.OwnCPU()
	var all sync.WaitGroup
	for _, do := range steps {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	used := stage.OwnCPU() - began
	b.StopTimer()
	b.ReportMetric(float64(used)/float64(time.Microsecond)/float64(b.N), "cpu-µs/op")
}

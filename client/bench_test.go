package client_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTenThousandHolds holds ten thousand leases for a while, in real time, and says
// which part of a core that takes, with the server in the same process. The TTL is
// shorter than the default, so there are three times as many renewals.
func BenchmarkTenThousandHolds(b *testing.B) {
	const n, ttl, span = 10000, 10 * time.Second, 10 * time.Second
	s := leasetest.New()
	defer s.Close()
	c, err := client.Dial(b.Context(), s.Config())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for i := range n {
		if _, err := c.Acquire(b.Context(), fmt.Sprintf("queue/worker-%d", i), client.TTL(ttl)); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	for b.Loop() {
		before := processor(b)
		time.Sleep(span)
		b.ReportMetric(100*float64(processor(b)-before)/float64(span), "%core")
	}
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
}

func BenchmarkAcquireRelease(b *testing.B) {
	s := leasetest.New()
	defer s.Close()
	c, err := client.Dial(b.Context(), s.Config())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		h, err := c.Acquire(b.Context(), "r")
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	s := leasetest.New()
	defer s.Close()
	config := s.Config()
	config.Clock = nil // the machine's
	c, err := client.Dial(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	h, err := c.Acquire(b.Context(), "r")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if !h.Valid() {
			b.Fatal(h.Err())
		}
	}
}

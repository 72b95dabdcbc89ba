//go:build linux

package workload

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/bench/system"
)

// A filler notes what it was asked for, and whether that was by two at a time.
type filler struct {
	system.Client
	busy   atomic.Bool
	shared *atomic.Bool // whether any of them was
	note   func(from, to int)
}

func (f *filler) Fill(_ context.Context, _ string, from, to int, _ time.Time) error {
	if !f.busy.CompareAndSwap(false, true) {
		f.shared.Store(true)
		return fmt.Errorf("%d to %d come while it is busy", from, to)
	}
	defer f.busy.Store(false)
	f.note(from, to)
	return nil
}

// Clients that fill make ids by counting: two goroutines on one of them would make an id twice.
func TestFillUsesAClientOnce(t *testing.T) {
	const from, to = 1000, 1000 + 50*2048 + 7
	var mu sync.Mutex
	var parts [][2]int
	var shared atomic.Bool
	filled := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(parts)
	}
	clients := make([]system.Client, 4)
	for i := range clients {
		clients[i] = &filler{shared: &shared, note: func(from, to int) {
			mu.Lock()
			parts = append(parts, [2]int{from, to})
			first := len(parts) == 1
			mu.Unlock()
			for first && filled() < 40 && !shared.Load() { // one part takes as long as most of the others
				runtime.Gosched()
			}
		}}
	}
	trial := &Trial{Say: func(string, ...any) {}}
	if err := trial.fill(t.Context(), clients, from, to, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(parts, func(a, b [2]int) int { return a[0] - b[0] })
	next := from
	for _, p := range parts {
		if p[0] != next {
			t.Fatalf("after %d comes %d", next, p[0])
		}
		next = p[1]
	}
	if next != to {
		t.Errorf("they end at %d", next)
	}
}

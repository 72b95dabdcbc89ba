package client

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// A keeper rings alarms, all of them from one goroutine. It looks at the clock at
// least so often that a pause of the process, or of the machine, is noticed soon:
// timers stop in suspend, and the clock does not.
type keeper struct {
	clock    Clock
	shortest func() time.Duration // TTL that pauses are a danger to; 0: none
	stalled  func(paused, ttl time.Duration)
	wake     chan struct{}

	mu     sync.Mutex // guards what follows
	alarms alarms
}

// An alarm rings at a moment of the clock. ring must not block; it returns when to
// ring again, or never.
type alarm struct {
	ring  func(now time.Duration) time.Duration
	at    time.Duration
	index int // in the heap, from 1 on; 0: not in it
}

// never is a moment that does not come.
const never = time.Duration(1<<63 - 1)

const (
	shortestTick = 5 * time.Millisecond
	longestTick  = time.Second
)

func newKeeper(c *Client) *keeper {
	return &keeper{clock: c.clock, shortest: c.shortest, stalled: c.stalled, wake: make(chan struct{}, 1)}
}

// run rings until ctx ends.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(longestTick)
	defer timer.Stop()
	seen := k.clock.Now()
	for {
		asleep, ttl := k.ringAll(), k.shortest()
		if ttl != 0 {
			asleep = min(asleep, max(shortestTick, min(ttl/10, longestTick)))
		}
		timer.Reset(asleep)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-ctx.Done():
			return
		}
		// The TTL is that from before: what was lost in the pause may be gone already. From
		// one reading to the next, so that no pause falls between two of them.
		now := k.clock.Now()
		if late := now - seen - asleep; ttl != 0 && late >= ttl/3 {
			k.stalled(late, ttl)
		}
		seen = now
	}
}

// ringAll rings what is due and returns how long to sleep then.
func (k *keeper) ringAll() time.Duration {
	for {
		now := k.clock.Now()
		k.mu.Lock()
		if len(k.alarms) == 0 {
			k.mu.Unlock()
			return time.Hour
		}
		first := k.alarms[0]
		if first.at > now {
			defer k.mu.Unlock()
			return first.at - now
		}
		first.at = never // ring says when next; what is set meanwhile stands if it is sooner
		heap.Fix(&k.alarms, 0)
		k.mu.Unlock()
		next := first.ring(now)
		k.mu.Lock()
		switch next = min(next, first.at); {
		case first.index == 0: // it was removed
		case next == never:
			heap.Remove(&k.alarms, first.index-1)
		default:
			first.at = next
			heap.Fix(&k.alarms, first.index-1)
		}
		k.mu.Unlock()
	}
}

// set makes an alarm ring at a moment, or earlier if it was set so.
func (k *keeper) set(a *alarm, at time.Duration) {
	k.mu.Lock()
	switch {
	case a.index == 0:
		a.at = at
		heap.Push(&k.alarms, a)
	case at < a.at:
		a.at = at
		heap.Fix(&k.alarms, a.index-1)
	}
	first := k.alarms[0] == a
	k.mu.Unlock()
	if first {
		k.poke()
	}
}

// remove takes an alarm away.
func (k *keeper) remove(a *alarm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.index != 0 {
		heap.Remove(&k.alarms, a.index-1)
	}
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// alarms is a heap, the soonest first.
type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at < h[j].at }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.index = len(*h)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = 0
	return a
}

package client

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// A scheduler fires timers on the client's clock, all from one goroutine. It also wakes up often
// enough to notice soon that the process or the machine was paused: Go's timers stop in suspend,
// and the clock does not.
type scheduler struct {
	clock       Clock
	shortestTTL func() time.Duration // the TTL that a pause endangers; 0: none
	reportStall func(paused, ttl time.Duration)
	wake        chan struct{}

	mu     sync.Mutex // guards what follows
	timers timers
}

// A timer fires at a moment of the clock. fire must not block; it returns when to fire again, or
// never.
type timer struct {
	fire  func(now time.Duration) time.Duration
	at    time.Duration
	index int // in the heap, from 1 on; 0: not in it
}

// never is a moment that does not come.
const never = time.Duration(1<<63 - 1)

// shortestTick and longestTick bound how often the clock is read: often enough to report a pause
// soon, seldom enough to let the processor sleep.
const (
	shortestTick = 5 * time.Millisecond
	longestTick  = time.Second
)

func newScheduler(c *Client) *scheduler {
	return &scheduler{clock: c.clock, shortestTTL: c.shortestTTL, reportStall: c.reportStall,
		wake: make(chan struct{}, 1)}
}

// run fires timers until ctx ends.
func (s *scheduler) run(ctx context.Context) {
	alarm := time.NewTimer(longestTick)
	defer alarm.Stop()
	seen := s.clock.Now()
	for {
		asleep, ttl := s.fireAll(), s.shortestTTL()
		if ttl != 0 {
			asleep = min(asleep, max(shortestTick, min(ttl/10, longestTick)))
		}
		alarm.Reset(asleep)
		select {
		case <-alarm.C:
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		// The TTL is the one from before the pause: what was lost in it may be gone already.
		// Late is counted from one reading to the next, so that no pause falls between two.
		now := s.clock.Now()
		if late := now - seen - asleep; ttl != 0 && late >= ttl/3 {
			s.reportStall(late, ttl)
		}
		seen = now
	}
}

// fireAll fires the timers that are due, and returns how long to sleep then.
func (s *scheduler) fireAll() time.Duration {
	for {
		now := s.clock.Now()
		s.mu.Lock()
		if len(s.timers) == 0 {
			s.mu.Unlock()
			return time.Hour
		}
		first := s.timers[0]
		if first.at > now {
			defer s.mu.Unlock()
			return first.at - now
		}
		// The lock is not held while a timer fires: fire may end a session, which removes the timer.
		first.at = never // fire returns the next moment; if set is called meanwhile, the earlier one counts
		heap.Fix(&s.timers, 0)
		s.mu.Unlock()
		next := first.fire(now)
		s.mu.Lock()
		switch next = min(next, first.at); {
		case first.index == 0: // it was removed
		case next == never:
			// A set during fire has made first.at earlier than never, and does not get here.
			heap.Remove(&s.timers, first.index-1)
		default:
			first.at = next
			heap.Fix(&s.timers, first.index-1)
		}
		s.mu.Unlock()
	}
}

// set makes a timer fire at a moment, or earlier if it was set so.
func (s *scheduler) set(a *timer, at time.Duration) {
	s.mu.Lock()
	switch {
	case a.index == 0:
		a.at = at
		heap.Push(&s.timers, a)
	case at < a.at:
		a.at = at
		heap.Fix(&s.timers, a.index-1)
	}
	first := s.timers[0] == a
	s.mu.Unlock()
	if first {
		s.wakeUp()
	}
}

// remove stops a timer.
func (s *scheduler) remove(a *timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.index != 0 {
		heap.Remove(&s.timers, a.index-1)
	}
}

func (s *scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// timers is a heap, the soonest first.
type timers []*timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *timers) Push(x any) {
	a := x.(*timer)
	*h = append(*h, a)
	a.index = len(*h)
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = 0
	return a
}

// Package backoff says how long to pause between attempts.
package backoff

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff says how long to pause before something is tried again: twice as long each time, and
// never the same for two clients. The zero Backoff begins with 50 ms and goes up to 1 s.
type Backoff struct {
	First time.Duration // 0: 50 ms
	Most  time.Duration // 0: 1 s
}

// Pause returns how long to pause after the n-th failure in a row, from 1 on. It is
// random, between half of what is due and all of it, so that clients which lost the same
// server do not return at the same moment.
func (b Backoff) Pause(n int) time.Duration {
	first, most := cmp.Or(b.First, 50*time.Millisecond), cmp.Or(b.Most, time.Second)
	const doublings = 10 // enough for any Most in use, and far from an overflow
	due := min(first<<min(max(n, 1)-1, doublings), most)
	return due/2 + rand.N(due/2+1)
}

// Sleep pauses after the n-th failure in a row. It reports whether ctx is still alive.
func (b Backoff) Sleep(ctx context.Context, n int) bool {
	timer := time.NewTimer(b.Pause(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

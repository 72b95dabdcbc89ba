package store

import "time"

// A Clock measures the time by which a holder judges its leases. Now never goes back, runs at
// the pace of real time, and does not stop while the machine sleeps: a holder that wakes up from
// suspend must find that its lease has ended.
//
// The default is CLOCK_BOOTTIME on Linux, and CLOCK_MONOTONIC on macOS. Elsewhere it is Go's own
// monotonic clock, which stops in suspend on some systems.
type Clock interface {
	Now() time.Duration
}

// goClock is Go's monotonic clock.
type goClock struct{ start time.Time }

func newGoClock() goClock { return goClock{time.Now()} }

func (c goClock) Now() time.Duration { return time.Since(c.start) }

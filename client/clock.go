package client

import "time"

// A Clock counts the time by which a client believes in its leases. Now only ever
// grows, at the pace of real time, and it goes on while the machine sleeps: a
// holder that wakes up from suspend must find that its lease has ended.
//
// The default is CLOCK_BOOTTIME on Linux. Where there is none it is Go's own
// monotonic clock, which stops in suspend on some systems.
type Clock interface {
	Now() time.Duration
}

// goClock counts from when it was made.
type goClock struct{ start time.Time }

func newGoClock() goClock { return goClock{time.Now()} }

func (c goClock) Now() time.Duration { return time.Since(c.start) }

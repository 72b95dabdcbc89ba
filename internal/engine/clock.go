package engine

import "time"

// A Clock is the only way in which an engine learns the time.
type Clock interface {
	// Monotonic never goes back and never jumps. It may stop while the machine
	// sleeps: leases then last longer, which is the safe way to be wrong.
	Monotonic() time.Duration

	// Wall is the calendar, for people to read. Nothing is decided by it.
	Wall() time.Time

	// Boot names the counting of Monotonic: two readings can be compared when it
	// is the same for both. Empty means never.
	Boot() string
}

// GoClock counts from when it was made, by the runtime's own clock. In a
// testing/synctest bubble it counts virtual time.
type GoClock struct{ start time.Time }

// NewGoClock returns a clock that starts at one second.
func NewGoClock() *GoClock { return &GoClock{time.Now().Add(-time.Second)} }

func (c *GoClock) Monotonic() time.Duration { return time.Since(c.start) }
func (c *GoClock) Wall() time.Time          { return time.Now() }
func (c *GoClock) Boot() string             { return "" }

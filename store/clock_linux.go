package store

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootClock is CLOCK_BOOTTIME, which does not stop in suspend as Go's clock does.
type bootClock struct{}

func (bootClock) Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// It could be read at the start. Without a clock no deadline can be kept, and a
		// guess would be worse than a crash.
		panic("CLOCK_BOOTTIME can no longer be read: " + err.Error())
	}
	return time.Duration(t.Nano())
}

// SystemClock returns the clock of this machine.
func SystemClock() Clock {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return newGoClock() // a sandbox may forbid it
	}
	return bootClock{}
}

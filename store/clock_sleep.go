//go:build linux || darwin

package store

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepClock is the system's clock that does not stop in suspend as Go's clock does.
type sleepClock struct{}

func (sleepClock) Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clockID, &t); err != nil {
		// It could be read at the start. Without a clock no deadline can be kept, and a
		// guess would be worse than a crash.
		panic("the clock that counts suspend can no longer be read: " + err.Error())
	}
	return time.Duration(t.Nano())
}

// SystemClock returns the clock of this machine.
func SystemClock() Clock {
	var t unix.Timespec
	if unix.ClockGettime(clockID, &t) != nil {
		return newGoClock() // a sandbox may forbid it
	}
	return sleepClock{}
}

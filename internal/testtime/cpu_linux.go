// Package testtime measures what code costs in tests and benchmarks that run beside other work.
package testtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns how long the calling thread has been running, which others on the machine do not disturb much. The
// goroutine has to stay on its thread: see runtime.LockOSThread.
func CPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

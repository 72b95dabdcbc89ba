package core_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is how long the thread that calls has been running, which others on the machine
// do not disturb much.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

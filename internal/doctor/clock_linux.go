package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// leaseClock reads the clock by which the Go client counts leases. It does not stop while the
// machine sleeps.
func leaseClock() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

func readClock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return time.Since(started) // a sandbox that does not allow it
	}
	return time.Duration(t.Nano())
}

var started = time.Now()

// The kernel corrects a clock in two ways: by a frequency, in units of 2^-16 ppm, and by the length
// of a tick.
const (
	staUnsync  = 0x40   // STA_UNSYNC
	timeError  = 5      // TIME_ERROR, what an unsynchronised clock answers
	usualTick  = 10_000 // microseconds, a hundred times a second
	freqToPPM  = 1 << 16
	ppmPerTick = 100 // one microsecond of 10,000
)

// ReadKernelClock reads the state of the clock. It needs no privilege, because it changes nothing.
func ReadKernelClock() kernelClock {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return kernelClock{known: true, err: err}
	}
	return kernelClock{
		known: true, unsynchronised: t.Status&staUnsync != 0 || state == timeError,
		ppm:   float64(t.Freq)/freqToPPM + float64(t.Tick-usualTick)*ppmPerTick,
		slept: readClock(unix.CLOCK_BOOTTIME) - readClock(unix.CLOCK_MONOTONIC),
	}
}

package cluster

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/internal/engine"
)

// systemClock is the machine's own.
type systemClock struct{ boot string }

// SystemClock returns the clock of this machine. It counts with CLOCK_MONOTONIC, which stops
// while the machine is suspended: cluster time may then be late, and never early. Its readings
// can be compared across processes as long as the machine has not booted again and the time
// namespace is the same; Boot names both.
func SystemClock() engine.Clock { return systemClock{bootID()} }

func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	// A kernel without time namespaces has only one, and no such link.
	space, _ := os.Readlink("/proc/self/ns/time")
	return strings.TrimSpace(string(boot)) + " " + space
}

func (c systemClock) Monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("the machine has no monotonic clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}

func (c systemClock) Wall() time.Time { return time.Now() }
func (c systemClock) Boot() string    { return c.boot }

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

// SystemClock returns the clock of this machine. It counts with CLOCK_MONOTONIC,
// whose readings can be compared across processes for as long as the machine has not
// started again and the time namespace is the same; Boot names both.
func SystemClock() engine.Clock { return systemClock{bootID()} }

func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	// Without time namespaces there is only one, and the link is not there.
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

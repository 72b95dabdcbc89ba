package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
func SystemClock() engine.Clock { return systemClock{clockName("/proc")} }

// clockName names the counting of CLOCK_MONOTONIC in this process: by the boot of the kernel, the
// time namespace, and the namespace's offsets. The number of a namespace is not enough: once its
// last process ended, the kernel gives the number to the next one, whose clock may be ahead by
// days. Where any of the three cannot be learned the name is empty, so that nothing is compared
// and a restart prolongs leases by the time without a server.
func clockName(proc string) string {
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil || len(strings.TrimSpace(string(boot))) == 0 {
		return ""
	}
	name := strings.TrimSpace(string(boot))
	self := filepath.Join(proc, "self")
	if _, err := os.Stat(filepath.Join(self, "ns")); err != nil {
		return "" // the /proc of processes that this one is not among
	}
	space, err := os.Readlink(filepath.Join(self, "ns/time"))
	if errors.Is(err, fs.ErrNotExist) {
		return name // a kernel without time namespaces has one clock
	}
	// The offsets are those of the namespace that children get. A process that left for another
	// one and started this program may not be in it itself, and then its own cannot be read.
	children, childrenErr := os.Readlink(filepath.Join(self, "ns/time_for_children"))
	offsets, offsetsErr := os.ReadFile(filepath.Join(self, "timens_offsets"))
	if err != nil || childrenErr != nil || offsetsErr != nil || children != space {
		return ""
	}
	return name + " " + space + " " + strings.Join(strings.Fields(string(offsets)), " ")
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

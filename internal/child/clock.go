//go:build linux || darwin

package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// now reads a clock that two processes share and that does not stop while the machine sleeps; 0 if
// there is none.
func now() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

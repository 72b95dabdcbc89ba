package child

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithParent has the command killed if this process dies without a chance to do so.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// adopt makes processes our children when their parents die, so that they can be waited for. Where
// that is not allowed, init adopts them and waits for them a little later.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// now reads a clock that two processes share and that does not stop while the machine sleeps; 0 if
// there is none.
func now() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

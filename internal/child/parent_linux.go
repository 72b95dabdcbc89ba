package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the command killed if this process dies without a chance to do so.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// adopt makes processes our children when their parents die, so that they can be waited for. Where
// that is not allowed, init adopts them and waits for them a little later.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

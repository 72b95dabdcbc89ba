package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Command is what to run. It has the streams of this process.
type Command struct {
	Argv []string
	Env  []string

	// Gate is how to start this program so that it calls Begin: the file and its arguments,
	// the first of which is the name. Empty: the command is started at once.
	Gate []string

	// Apart puts it into a session of its own, which no terminal hangs up.
	Apart bool
}

// A process is a command that was started, and the group of processes that it leads.
type process struct {
	pid      int // also that of the group
	terminal *terminal
	gate     *os.File                // nil: it has begun
	changes  chan syscall.WaitStatus // each stop, and the end
}

// Find returns the file of a command, so that a wrong name is noticed before anybody waits for a
// lease.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil // PATH asks for programs of the current directory
	}
	return path, err
}

// start starts a command.
func start(c Command, t *terminal) (*process, error) {
	path, err := Find(c.Argv[0])
	if err != nil {
		return nil, err
	}
	// Descendants whose own parent dies become our children, so that lives can wait for them.
	adopt()
	p := &process{terminal: t, changes: make(chan syscall.WaitStatus, 1)}
	started := make(chan error)
	go p.live(path, c, started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.handTerminal()
	return p, nil
}

// live starts the process and waits for it, on one thread: the kernel sends the signal at a
// parent's death when the thread that forked ends, not the process.
func (p *process) live(path string, c Command, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attributes := &syscall.SysProcAttr{Setpgid: !c.Apart, Setsid: c.Apart}
	dieWithParent(attributes)
	pid, err := p.fork(path, c, attributes)
	p.pid = pid
	started <- err
	if err != nil {
		return
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			// Nobody could say any longer whether the command runs, and so not whether the lease
			// may be given back.
			panic("a child of ours cannot be waited for: " + err.Error())
		}
		p.changes <- status
		if !status.Stopped() {
			return
		}
	}
}

// fork starts the process, behind the gate if there is one.
func (p *process) fork(path string, c Command, attributes *syscall.SysProcAttr) (int, error) {
	how := &syscall.ProcAttr{Env: c.Env, Files: []uintptr{0, 1, 2}, Sys: attributes}
	if len(c.Gate) == 0 {
		return syscall.ForkExec(path, c.Argv, how)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer theirs.Close()
	// The other end is closed here once the child has it: only then does the child notice that we
	// are gone.
	p.gate = ours
	// It keeps its number. As one more of Files it would be number 3, and take the place of a file that
	// our caller has opened for the command.
	number := int(theirs.Fd())
	if _, err := unix.FcntlInt(uintptr(number), unix.F_SETFD, 0); err != nil {
		return 0, err
	}
	begin := []string{strconv.Itoa(number), ignoredSignals(), path}
	return syscall.ForkExec(c.Gate[0], slices.Concat(c.Gate[1:], begin, c.Argv), how)
}

// tell sends the whole group a signal. It is no error if the group is gone.
func (p *process) tell(s syscall.Signal) { _ = syscall.Kill(-p.pid, s) }

// pass hands a signal on. Those that programs agree upon among themselves go to the
// command alone, since others in its group would die of them.
func (p *process) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGUSR1, syscall.SIGUSR2:
		_ = syscall.Kill(p.pid, s)
	default:
		p.tell(s)
	}
}

// lives reports whether any process of the group is left, once the command itself has ended.
func (p *process) lives() bool {
	for {
		pid, err := syscall.Wait4(-p.pid, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			break
		}
	}
	return !errors.Is(syscall.Kill(-p.pid, 0), syscall.ESRCH)
}

// handTerminal gives the command the terminal, if it is ours to give.
func (p *process) handTerminal() {
	if !p.terminal.ours() {
		return
	}
	p.terminal.give(p.pid)
	// It may have tried to read before it was allowed to, and been stopped.
	p.tell(syscall.SIGCONT)
}

// hasTerminal reports whether the command may read from the terminal.
func (p *process) hasTerminal() bool { return p.terminal.group() == p.pid }

// code is the exit code that a shell would give for a status.
func code(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

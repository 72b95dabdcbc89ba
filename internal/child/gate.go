package child

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A gate holds a command back until the guard knows its group: if we were killed before
// that, nobody would end what the command has started. The command is begun by this very
// program, which waits at the gate and then becomes the command.

// ignoredSignals is the set of signals that are ignored now, as the system writes it. A Go
// program that becomes another one does not hand it on by itself.
func ignoredSignals() string {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return "0"
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if mask, ok := strings.CutPrefix(lines.Text(), "SigIgn:"); ok {
			return strings.TrimSpace(mask)
		}
	}
	return "0"
}

// Begin waits at the gate and becomes the command: the number of the file that is the gate, the set
// of signals to be ignored, the file of the command, and its arguments. It returns, with an exit
// code, only if that failed. It must not fork: the process that the parent waits for and signals has
// to be the command itself.
func Begin(args []string) int {
	if len(args) < 4 {
		return 64
	}
	number, err := strconv.ParseUint(args[0], 10, 31)
	if err != nil {
		return 64
	}
	gate := os.NewFile(uintptr(number), "gate")
	var until time.Duration
	if n, _ := fmt.Fscanln(gate, (*int64)(&until)); n == 0 {
		return exitKilled // the process that started us is gone
	}
	_ = gate.Close()
	// A process can be paused between the look at the lease and this line; so the last look is
	// here, in the process that would do the harm.
	if until != 0 && now() >= until {
		return exitKilled // it was opened too late: the lease is over
	}
	mask, _ := strconv.ParseUint(args[1], 16, 64)
	// Go's runtime installs handlers for most signals, and an exec resets what is handled to its
	// default: the command would no longer ignore what its caller wanted ignored.
	for n := syscall.Signal(1); n <= 64; n++ {
		if mask&(1<<(n-1)) != 0 {
			signal.Ignore(n)
		}
	}
	err = syscall.Exec(args[2], args[3:], os.Environ())
	fmt.Fprintf(os.Stderr, "leasehold: %s cannot be run: %v\n", args[3], err)
	return 126
}

// exitKilled is the code of what was killed, or never began.
const exitKilled = 128 + int(syscall.SIGKILL)

// begin lets the command begin, if that happens before a moment of the clock that it
// shares with us; 0: at any time.
func (p *process) begin(until time.Duration) {
	if p.gate != nil {
		_, _ = fmt.Fprintf(p.gate, "%d\n", until)
		_ = p.gate.Close()
	}
}

// turnAway ends a command that has not begun. Closing the gate is enough for a process that still
// reads; the signal is for one that was stopped.
func (p *process) turnAway() {
	if p.gate != nil {
		_ = p.gate.Close()
	}
	p.tell(syscall.SIGKILL)
}

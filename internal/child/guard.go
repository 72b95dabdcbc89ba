package child

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// A guard is a second process that waits while a command runs, and kills the command's whole group
// if the first process dies or is stopped. Nobody else could do that in time: the system itself
// only ends the command, not what the command has started.
type guard struct {
	process *exec.Cmd
	orders  *os.File
	until   time.Duration // what it was told last
}

// startGuard starts a guard, in a session of its own so that a signal to our group or a hangup of
// the terminal does not end it too. If it cannot be started, the command runs without one: that is
// worse only if we are killed.
func startGuard(argv []string) *guard {
	if len(argv) == 0 {
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close()
	g := &guard{orders: ours, process: &exec.Cmd{Path: argv[0], Args: argv[1:], Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}}
	if err := g.process.Start(); err != nil {
		_ = ours.Close()
		return nil
	}
	return g
}

// order tells the guard something. One that is gone, or does not listen, cannot be told.
func (g *guard) order(format string, args ...any) {
	if g != nil {
		// A guard that was stopped does not read, and a full pipe must not keep us from watching
		// the lease.
		_ = g.orders.SetWriteDeadline(time.Now().Add(tick))
		_, _ = fmt.Fprintf(g.orders, format+"\n", args...)
	}
}

// lasts tells the guard how long the group may live. It sends only what moved by more than a
// little. The moment is on a clock that both processes read, so that a pause of either does not
// move it.
func (g *guard) lasts(left time.Duration) {
	if g == nil || left <= 0 || now() == 0 {
		return
	}
	until := now() + left
	if moved := until - g.until; moved.Abs() >= tick/2 {
		g.until = until
		g.order("until %d", until)
	}
}

// dismiss ends the guard when there is nothing left to guard.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	g.order("done")
	_ = g.orders.Close()
	_ = g.process.Process.Kill() // it may have been stopped, and never read that
	_ = g.process.Wait()
}

// Guard is the guard's own life: it reads orders, and kills the group if they end without
// a word, or when the time of the group is over.
func Guard(orders io.Reader) {
	// They are meant for the command. A guard that ended by them would leave it unguarded.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	follow(orders)
}

// follow carries out the orders of the parent. When the pipe closes without a
// "done", the parent is dead, and the group has to go too.
func follow(orders io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(orders); s.Scan(); {
			lines <- s.Text()
		}
	}()
	var (
		group int
		until time.Duration
	)
	timer := time.NewTimer(time.Second)
	for {
		select {
		case line, more := <-lines:
			word, number, _ := strings.Cut(line, " ")
			switch {
			case !more:
				killGroup(group)
				return
			case word == "done":
				return
			case word == "group":
				_, _ = fmt.Sscan(number, &group)
			case word == "until":
				_, _ = fmt.Sscan(number, (*int64)(&until))
			}
		case <-timer.C:
			if until != 0 && now() >= until {
				killGroup(group)
			}
		}
		timer.Reset(nextLook(until))
	}
}

// nextLook is also soon while nothing is due: timers stop while a machine sleeps.
func nextLook(until time.Duration) time.Duration {
	if until == 0 {
		return time.Second
	}
	return max(tick/10, min(time.Second, until-now()))
}

func killGroup(group int) {
	// Kill(-1) would reach every process of the user, and Kill(0) the guard's own group.
	if group > 1 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// Myself is the program that runs now, also if its file has been replaced since.
func Myself() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

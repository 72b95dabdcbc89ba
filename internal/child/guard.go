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

// A Guard is a second process that waits while a command runs, and kills the command's whole group
// if the first process dies or is stopped. Nobody else could do that in time: the system itself
// only ends the command, not what the command has started. If the first process died, the guard
// then does what it was told to do in that case: see Then.
type Guard struct {
	process *exec.Cmd
	orders  *os.File
	unsent  []byte        // of what it was told: it may not have read for a while
	until   time.Duration // what it was told last
}

// StartGuard starts a guard, in a session of its own so that a signal to our group or a hangup of
// the terminal does not end it too. argv is how to start this program so that it calls Watch: the
// file and its arguments, from the name on. If it cannot be started, the result is nil, and
// commands run without one: that is worse only if we are killed.
func StartGuard(argv []string) *Guard {
	if len(argv) == 0 {
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close()
	g := &Guard{orders: ours, process: &exec.Cmd{Path: argv[0], Args: argv[1:], Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}}
	if err := g.process.Start(); err != nil {
		_ = ours.Close()
		return nil
	}
	return g
}

// maxUnsent is how much is kept for a guard that does not read: it was stopped.
const maxUnsent = 1 << 20

// order tells the guard something. One that is gone, or does not listen, cannot be told.
func (g *Guard) order(format string, args ...any) {
	if g != nil && len(g.unsent) < maxUnsent {
		g.unsent = fmt.Appendf(g.unsent, format+"\n", args...)
		g.send()
	}
}

// send sends what the guard was not told yet, as far as it goes: a full pipe must not keep us from
// watching the lease. The rest follows later, so that no order is cut in two.
func (g *Guard) send() {
	_ = g.orders.SetWriteDeadline(time.Now().Add(tick))
	n, _ := g.orders.Write(g.unsent)
	g.unsent = g.unsent[n:]
}

// Then tells the guard what to do if we die, once nothing of the command is left: what Watch calls
// its function with. It is one line, and the last one counts. It goes through a pipe, so it may
// have in it what others on this machine must not see.
func (g *Guard) Then(what string) { g.order("then %s", what) }

// guards tells the guard of a command that was started.
func (g *Guard) guards(group int, mark string) { g.order("group %d %s", group, mark) }

// rests tells the guard that nothing is left of the command.
func (g *Guard) rests() {
	if g != nil {
		g.until = 0
		g.order("group 0")
	}
}

// lasts tells the guard until when the group may live; 0: nobody knows. It sends only what moved by
// more than a little. The moment is on a clock that both processes read, so that a pause of either
// does not move it.
func (g *Guard) lasts(until time.Duration) {
	if g == nil || until == 0 {
		return
	}
	if moved := until - g.until; moved.Abs() >= tick/2 {
		g.until = until
		g.order("until %d", until)
	} else if len(g.unsent) > 0 {
		g.send()
	}
}

// Dismiss ends the guard when there is nothing left to guard.
func (g *Guard) Dismiss() {
	if g == nil {
		return
	}
	g.order("done")
	_ = g.orders.Close()
	_ = g.process.Process.Kill() // it may have been stopped, and never read that
	_ = g.process.Wait()
}

// Watch is the guard's own life: it reads orders, and kills the group if they end without a word,
// or when the time of the group is over. If they ended without a word, the process that gave them
// is dead. When nothing is left of the group, and before its time is over, then is called with what
// it was told by Then, and with how long that may take; 0: as long as it likes.
func Watch(orders io.Reader, then func(what string, within time.Duration)) {
	// They are meant for the command. A guard that ended by them would leave it unguarded.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	w := watcher{then: then}
	w.follow(orders)
}

// A watcher is what a guard knows.
type watcher struct {
	then  func(what string, within time.Duration)
	what  string
	group int
	mark  string
	until time.Duration // 0: not known
}

// follow carries out the orders of the parent. When the pipe closes without a
// "done", the parent is dead, and the group has to go too.
func (w *watcher) follow(orders io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		// A Scanner would end at a long line, as if the parent were dead.
		for in := bufio.NewReader(orders); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return // what is cut off is no order
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	timer := time.NewTimer(time.Second)
	for {
		select {
		case line, more := <-lines:
			if !more {
				w.bereaved()
				return
			}
			if line == "done" {
				return
			}
			w.heed(line)
		case <-timer.C:
			if w.over() {
				killGroup(w.group)
			}
		}
		timer.Reset(nextLook(w.until))
	}
}

func (w *watcher) heed(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "group":
		w.group, w.mark, w.until = 0, "", 0
		_, _ = fmt.Sscan(rest, &w.group, &w.mark)
	case "until":
		_, _ = fmt.Sscan(rest, (*int64)(&w.until))
	case "then":
		w.what = rest
	}
}

// over reports whether the time of the group is over.
func (w *watcher) over() bool { return w.until != 0 && now() >= w.until }

// bereaved ends the group of a parent that died, and then does what is left to do. It does that
// only while it knows that nobody else can have the lease yet and nothing of the command is left: what
// cannot be killed, or has left the group, still works, and may do so until the lease ends by itself.
func (w *watcher) bereaved() {
	killGroup(w.group)
	for pause := time.Millisecond; groupLives(w.group) || marked(w.mark); pause = min(2*pause, tick) {
		if w.over() {
			return
		}
		time.Sleep(pause)
	}
	if w.then == nil || w.what == "" || w.over() {
		return
	}
	within := time.Duration(0)
	if w.until != 0 {
		within = w.until - now()
	}
	w.then(w.what, within)
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

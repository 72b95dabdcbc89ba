package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// A Lease is what a command must not outlive.
type Lease interface {
	Remaining() time.Duration // how long it is surely ours; 0: it is lost
	Lost() <-chan struct{}    // closed when it is
}

// A Run is a command under a lease.
type Run struct {
	Command
	Lease Lease

	// KillAfter is how long the command has to end, from when it is told to.
	KillAfter time.Duration

	// Guard kills what the command started if we are killed. Without one, it lives on.
	Guard *Guard

	// Mark is a word that nothing but the environment of the command has: by it the guard finds, on
	// Linux, what the command started and has left its group. Empty: it looks for nothing.
	Mark string

	// Signals are passed on to the command. See Signals.
	Signals <-chan os.Signal

	// Warn is called with what a person should know. It may be nil.
	Warn func(what Warning)
}

// A Warning is what happened to a command.
type Warning int

// The warnings.
const (
	Told    Warning = iota + 1 // the lease is about to end, and it was told to stop
	Killed                     // it had not stopped when it had to
	Orphans                    // it ended, and left others of its group running: they are told to stop
)

// An End is how a command ended.
type End struct {
	Code    int  // as a shell has it: 128 and more if a signal ended it
	Stopped bool // it was told to stop, or killed, since the lease was about to end or had ended
	Never   bool // it was stopped before it began
	Signal  syscall.Signal
}

// Do starts the command and returns when nothing of it is left. If the lease is lost
// before the command begins, it never does.
func (r Run) Do() (End, error) {
	// Not a moment is left to kill it in: it must not begin.
	if r.Lease.Remaining() <= r.dying() {
		return End{Code: exitKilled, Stopped: true, Never: true}, nil
	}
	t := standardTerminal()
	if r.Apart {
		t = nil
	}
	p, err := start(r.Command, t)
	if err != nil {
		return End{}, err
	}
	// Before the gate opens: from the command's first instruction on, the guard can end it.
	r.Guard.guards(p.pid, r.Mark)
	w := &watch{Run: r, process: p, lost: r.Lease.Lost()}
	never := !w.open()
	end := w.untilEnd()
	r.Guard.rests()
	end.Never = never
	return end, nil
}

// tick is how often the lease is looked at, at least: timers stop while a machine sleeps,
// and a deadline can move nearer.
const tick = 100 * time.Millisecond

// A watch is over a command that runs.
type watch struct {
	Run
	process *process
	lost    <-chan struct{}

	told   bool // to stop
	killAt time.Time
	killed bool
}

// open opens the gate, and reports whether the lease still allowed that. The guard learns the
// deadline first: if we are stopped right after, nobody else could tell it.
func (w *watch) open() bool {
	left, until := w.remaining()
	if left <= w.dying() && w.process.gate != nil {
		w.killed = true
		w.process.turnAway()
		return false
	}
	w.Guard.lasts(until)
	w.process.begin(until)
	return true
}

// remaining returns how long the lease lasts, and until when on the clock that other processes share; 0: nothing is
// left, or there is no such clock. That clock is read first: if we are paused in between, others are told an earlier
// end and not a later one.
func (w *watch) remaining() (left, until time.Duration) {
	at := now()
	if left = w.Lease.Remaining(); left > 0 && at != 0 {
		until = at + left
	}
	return left, until
}

// untilEnd does one thing at a time. The lease is looked at before each: after a pause all of them
// may be due at once, and a command that has no right to go on must be killed before anything else
// happens.
func (w *watch) untilEnd() End {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.look())
		select {
		case s := <-w.Signals:
			w.look()
			w.signal(s.(syscall.Signal))
		case status := <-w.process.changes:
			if !status.Stopped() {
				return w.ended(status)
			}
			w.look()
			w.stopped(status.StopSignal())
		// The next look sees that nothing remains. A closed channel would be ready for ever.
		case <-w.lost:
			w.lost = nil
		case <-timer.C:
		}
	}
}

// look stops a command that may not go on, and returns when to look again. It asks for what remains
// and not whether the lease is lost: the command has to be gone before the end, not after it.
func (w *watch) look() time.Duration {
	left, until := w.remaining()
	w.Guard.lasts(until)
	switch {
	case w.killed:
	case left <= w.dying(), w.told && !time.Now().Before(w.killAt):
		w.kill()
	case !w.told && left <= w.KillAfter:
		w.told, w.killAt = true, time.Now().Add(w.KillAfter)
		w.warn(Told)
		w.process.tell(syscall.SIGTERM)
		w.process.tell(syscall.SIGCONT) // a stopped process acts on SIGTERM only once it continues
	}
	switch {
	case w.killed:
		return tick
	case w.told:
		return min(tick, left-w.dying(), time.Until(w.killAt))
	}
	return min(tick, left-w.KillAfter)
}

// dying returns how long a group may take to die. It is killed that much before the lease ends, so
// that it is dead when the lease ends, also on a busy machine.
func (r *Run) dying() time.Duration { return min(r.KillAfter/10, 100*time.Millisecond) }

func (w *watch) kill() {
	w.killed, w.killAt = true, time.Now()
	w.process.tell(syscall.SIGKILL)
	w.warn(Killed)
}

func (w *watch) warn(what Warning) {
	if w.Warn != nil {
		w.Warn(what)
	}
}

// signal passes a signal on. SIGCONT comes through here too, so that the lease is checked before a
// stopped command continues.
func (w *watch) signal(s syscall.Signal) {
	if s == syscall.SIGCONT {
		w.process.handTerminal()
	}
	w.process.pass(s)
}

// stopped stops ourselves after the command, so that the shell which started us sees that
// it was stopped, and can go on with both of us later.
func (w *watch) stopped(by syscall.Signal) {
	switch {
	case by == syscall.SIGSTOP:
		return // another process did it, and will undo it
	case by != syscall.SIGTSTP && w.process.hasTerminal():
		w.process.tell(syscall.SIGCONT) // it had tried before it had the terminal
		return
	}
	if w.process.hasTerminal() {
		w.process.terminal.give(syscall.Getpgrp())
	}
	// We go on here for a moment, and then in signal, when SIGCONT comes.
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
}

// ended waits for the rest of the group, and says how it was.
func (w *watch) ended(status syscall.WaitStatus) End {
	if w.process.hasTerminal() {
		w.process.terminal.give(syscall.Getpgrp())
		if status.Signaled() {
			w.process.terminal.restore()
		}
	}
	end := End{Code: code(status), Stopped: w.told || w.killed}
	if status.Signaled() {
		end.Signal = status.Signal()
		// If it was too late already, it was the guard that did it.
		end.Stopped = end.Stopped || end.Signal == syscall.SIGKILL && w.Lease.Remaining() <= 0
	}
	w.untilGone()
	return end
}

// unkillable is how long a group may take to vanish after it was killed.
const unkillable = 2 * time.Second

// untilGone stops what the command left behind: it has no right to go on, since the lease is given
// back next. What ends right after the command is not reported.
func (w *watch) untilGone() {
	if w.vanishes(time.Now().Add(tick)) {
		return
	}
	if !w.told && !w.killed {
		w.warn(Orphans)
		w.process.tell(syscall.SIGTERM)
		w.process.tell(syscall.SIGCONT)
		w.killAt = time.Now().Add(w.KillAfter)
	}
	if w.vanishes(w.killAt) {
		return
	}
	w.killed = true
	w.process.tell(syscall.SIGKILL)
	// If that does not help, they are zombies that nobody waits for, or not ours to kill.
	w.vanishes(time.Now().Add(unkillable))
}

// vanishes waits until no process of the group is left. It returns false if the given moment, or
// the end of the lease, came first.
func (w *watch) vanishes(by time.Time) bool {
	for pause := time.Millisecond; w.process.lives(); pause = min(2*pause, tick/5) {
		left, until := w.remaining()
		w.Guard.lasts(until)
		if !time.Now().Before(by) || !w.killed && left <= w.dying() {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// Passed are the signals that are passed on to a command.
var Passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH,
	syscall.SIGTSTP, syscall.SIGCONT,
}

// Signals catches the signals that are passed on, until stop is called. What this process was
// started to ignore, such as SIGHUP under nohup, it and its commands continue to ignore.
func Signals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 64)
	for _, s := range Passed {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

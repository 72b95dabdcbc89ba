package child

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is the one at standard input; nil if there is none. The group in its foreground alone
// may read from it and gets what ctrl-C and ctrl-Z send.
type terminal struct {
	fd    int
	state *term.State // as it was before the command could change it
}

// standardTerminal returns the terminal of standard input, nil if it is none.
func standardTerminal() *terminal {
	const stdin = 0
	if !term.IsTerminal(stdin) {
		return nil
	}
	state, err := term.GetState(stdin)
	if err != nil {
		return nil
	}
	return &terminal{stdin, state}
}

// group returns the group in the foreground; 0 if it is not known.
func (t *terminal) group() int {
	if t == nil {
		return 0
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0 // it is not the terminal that controls us
	}
	return group
}

// ours reports whether this process is in the foreground.
func (t *terminal) ours() bool { return t != nil && t.group() == syscall.Getpgrp() }

// give puts a group into the foreground. A process in the background that does so is stopped by
// SIGTTOU, unless it ignores that; it is ignored only for a moment, since commands inherit what is
// ignored.
func (t *terminal) give(group int) {
	ignored := signal.Ignored(syscall.SIGTTOU)
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	if !ignored {
		signal.Reset(syscall.SIGTTOU)
	}
}

// restore undoes what a killed command did to the terminal, such as turning echo off.
func (t *terminal) restore() { _ = term.Restore(t.fd, t.state) }

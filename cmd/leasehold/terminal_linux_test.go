package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A tty is a terminal with somebody at its keyboard.
type tty struct {
	*stage
	keys *os.File // the other end
	seen lockedBuffer
	read int // how much of it was looked at
}

// openTerminal runs a shell, or whatever else, as the first process at a terminal.
func (s *stage) openTerminal(argv ...string) (*tty, *player) {
	s.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.Skip("left out: there are no terminals here: ", err)
	}
	s.Cleanup(func() { _ = keys.Close() })
	unlocked := 0
	raw, err := keys.SyscallConn()
	if err != nil {
		s.Fatal(err)
	}
	var number int
	_ = raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, unlocked)
		if err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		s.Skip("left out: there are no terminals here: ", err)
	}
	screen, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.Skip("left out: there are no terminals here: ", err)
	}
	defer screen.Close()
	t := &tty{stage: s, keys: keys}
	p := s.prepares()
	p.Path, p.Args = lookPath(s, argv[0]), argv
	p.Stdin, p.Stdout, p.Stderr = screen, screen, screen
	p.Env = append(p.Env, "PS1=% ", "ENV=", "TERM=dumb")
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { _, _ = io.Copy(&t.seen, keys) }()
	return t, p
}

func lookPath(s *stage, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		s.Skip("left out: there is no ", name)
	}
	return path
}

func (t *tty) types(keys string) {
	t.Helper()
	if _, err := t.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// shows waits until the screen has a pattern, behind what was waited for before.
func (t *tty) shows(pattern string) {
	t.Helper()
	r := regexp.MustCompile(pattern)
	defer func() {
		if t.Failed() {
			t.Logf("the screen shows:\n%s", t.seen.String())
		}
	}()
	t.soon("the screen shows "+pattern, func() bool {
		at := r.FindStringIndex(t.seen.String()[t.read:])
		if at != nil {
			t.read += at[1]
		}
		return at != nil
	})
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
	ctrlD = "\x04"
)

// Fault: standard input, or the terminal, does not reach the command.
func TestRunHandsTheTerminalOver(t *testing.T) {
	s := newStage(t)
	screen, p := s.openTerminal("leasehold", "run", "a", "--", "sh", "-c",
		`read line; echo "got $line"; trap "exit 33" INT; echo ready; while :; do sleep 0.01; done`)
	screen.types("hello\n")
	screen.shows("got hello")
	screen.shows("ready")
	screen.types(ctrlC)
	p.ends(33)
}

func TestRunGivesTheTerminalBack(t *testing.T) {
	s := newStage(t)
	screen, p := s.openTerminal("sh", "-c",
		`leasehold run a -- sh -c 'stty raw -echo; kill -KILL $$'; read line; echo "then $line"; exit 3`)
	s.soon("the end of the lease", func() bool {
		r, err := s.caller().Resource(t.Context(), "a", 0)
		return err == nil && len(r.Holders) == 0 && r.Last != nil
	})
	screen.types("hello\n")
	screen.shows("then hello")
	p.ends(3)
}

// A person stops both with one key, and goes on with them.
func TestRunIsStoppedAndGoesOn(t *testing.T) {
	s := newStage(t)
	screen, p := s.openTerminal("bash", "--norc", "--noprofile", "-i")
	screen.types(`leasehold run a -- sh -c 'echo he''re; read line; echo "got $line"; exit 4'` + "\n")
	screen.shows("here")
	screen.types(ctrlZ)
	screen.shows("Stopped")
	screen.types("echo pro''mpt\n")
	screen.shows("prompt")
	screen.types("fg\n")
	screen.shows("leasehold run")
	screen.types("hello\n")
	screen.shows("got hello")
	screen.types("echo code=$?\n")
	screen.shows("code=4\r")
	screen.types(ctrlD)
	p.ends(0)
}

// Whoever was stopped for too long is not let go on.
func TestRunIsStoppedForTooLong(t *testing.T) {
	s := newStage(t)
	screen, p := s.openTerminal("bash", "--norc", "--noprofile", "-i")
	screen.types(`leasehold run --ttl 1s a -- sh -c 'echo he''re; read line; echo x >on'` + "\n")
	screen.shows("here")
	screen.types(ctrlZ)
	screen.shows("Stopped")
	s.lastEnd("a")
	screen.types("fg\n")
	screen.shows("leasehold: a: the lease expired")
	screen.types("echo code=$?\n")
	screen.shows("code=76\r")
	if _, err := os.Stat(s.dir + "/on"); err == nil {
		t.Error("the command went on without its lease")
	}
	screen.types(ctrlD)
	p.ends(0)
}

// Fault: the wrapper dies with the session from which it was started.
func TestRunKeepsOn(t *testing.T) {
	s := newStage(t)
	for _, keep := range []bool{true, false} {
		name := fmt.Sprint("keep-", keep)
		run := "leasehold run --keep=" + fmt.Sprint(keep) + " " + name + ` -- sh -c 'echo $$ >` + name +
			`; until test -e go; do sleep 0.02; done; echo x >done-` + name + `'`
		screen, p := s.openTerminal("bash", "--norc", "--noprofile", "-i")
		screen.types(run + " & echo $! >run-" + name + "\n")
		s.file(name)
		if err := screen.keys.Close(); err != nil { // as when a connection is cut
			t.Fatal(err)
		}
		_ = p.Wait()
		if keep {
			continue
		}
		s.gone(name)
		s.gone("run-" + name)
	}
	if !alive(s.number("keep-true")) || !alive(s.number("run-keep-true")) {
		t.Error("what was to be kept is gone")
	}
	if err := os.WriteFile(s.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.file("done-keep-true")
	if _, how := s.lastEnd("keep-true"); how != "released" {
		t.Errorf("the lease ended as %s", how)
	}
	if _, err := os.Stat(s.dir + "/done-keep-false"); err == nil {
		t.Error("what was not to be kept went on")
	}
}

// A script in the background is not hit by ctrl-C, and neither is what it runs.
func TestRunInTheBackground(t *testing.T) {
	s := newStage(t)
	screen, p := s.openTerminal("sh", "-c",
		`leasehold run a -- sh -c 'echo $$ >pid; until test -e go; do sleep 0.02; done; echo x >done' & trap "echo heard" INT; while ! test -e done; do sleep 0.02; done; wait; exit 5`)
	s.file("pid")
	screen.types(ctrlC)
	screen.shows("heard")
	if err := os.WriteFile(s.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ends(5)
	if strings.Contains(screen.seen.String(), "leasehold:") {
		t.Errorf("the screen shows:\n%s", screen.seen.String())
	}
}

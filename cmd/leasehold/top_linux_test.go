package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pty is a terminal with a program on it, and a test in the place of the person.
type pty struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen bytes.Buffer // all that was ever written on it
}

func openPTY(t *testing.T, env []string, args ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("left out: there are no pseudo terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 90})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	p := &pty{t: t, master: master, cmd: exec.Command("leasehold", args...)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go p.read()
	return p
}

func (p *pty) read() {
	b := make([]byte, 4096)
	for {
		n, err := p.master.Read(b)
		p.mu.Lock()
		p.screen.Write(b[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits for words to be written, and forgets what was there up to now.
func (p *pty) until(words string) {
	p.t.Helper()
	for end := time.Now().Add(patienceOfScripts); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		seen := p.screen.String()
		if strings.Contains(seen, words) {
			p.screen.Reset()
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if time.Now().After(end) {
			p.t.Fatalf("%q was never shown:\n%q", words, seen)
		}
	}
}

func (p *pty) types(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) ends(code int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("it ended with code %d, want %d", got, code)
	}
}

// The whole of top on a terminal: it shows, follows, breaks, survives the server and
// leaves the terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	tr := newTrial(t, false)
	server := "LEASEHOLD_SERVER=" + tr.Getenv("LEASEHOLD_SERVER")
	p := openPTY(t, []string{server, "TERM=xterm-256color", "NO_COLOR=1"}, "top")
	p.until("nothing is held here")
	tr.does(t, 0, "acquire", "prod/deploy", "--id", "d-1", "--holder", "ann", "--ttl", "1h", "--reason", "release 310")
	p.until("> prod/deploy")
	p.types("\r")
	p.until("Lease id:")
	p.types("b")
	p.until("This will end a lease:")
	p.types("host gone\t")
	p.until("now")
	p.types("\r")
	p.until("y breaks it")
	p.types("y")
	p.until("broken: ann has lost prod/deploy")
	tr.does(t, 76, "renew", "d-1")
	p.types("q")
	p.types("q")
	p.until("\x1b[?1049l")
	p.ends(0)

	p = openPTY(t, []string{server, "TERM=xterm"}, "top")
	p.until("prod/deploy")
	p.types("\x03")
	p.ends(130)

	p = openPTY(t, []string{server, "TERM=xterm"}, "top")
	p.until("prod/deploy")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.until("\x1b[?1049l")
	p.ends(143)
}

// list --watch on a terminal draws in place and counts down.
func TestListWatchOnATerminal(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "acquire", "prod/deploy", "--id", "d-1", "--holder", "ann", "--ttl", "1h")
	p := openPTY(t, []string{"LEASEHOLD_SERVER=" + tr.Getenv("LEASEHOLD_SERVER"), "TERM=xterm"}, "list", "--watch")
	p.until("59m5")
	for i := range 30 {
		tr.does(t, 0, "acquire", fmt.Sprintf("r/%d", i), "--holder", "ann", "--ttl", "1h")
	}
	p.until("31 resources in namespace default")
	p.until("more lines: leasehold top scrolls")
	p.types("\x03")
	p.ends(130)
}

// break takes somebody out of the queue who holds the lease by the time the person says yes: the
// lease was not meant.
func TestBreakOfAWaiterWhoseTurnComes(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "acquire", "prod/deploy", "--id", "d-1", "--holder", "ann", "--ttl", "1h")
	server := []string{"LEASEHOLD_SERVER=" + tr.Getenv("LEASEHOLD_SERVER"), "TERM=dumb"}
	waiter := openPTY(t, server, "acquire", "prod/deploy", "--id", "d-2", "--holder", "bob", "--ttl", "1h", "--wait", "1h")
	waiter.until("waiting")
	p := openPTY(t, server, "break", "prod/deploy", "--id", "d-2", "--now", "--reason", "not today")
	p.until("the wait of bob, place 1, id d-2")
	tr.does(t, 0, "release", "d-1")
	waiter.ends(0)
	p.types("yes\n")
	p.until("d-2 no longer waits: bob now holds prod/deploy, with token 2; look again before you break that")
	p.ends(76)
	tr.does(t, 0, "renew", "d-2")
}

// define --replace on a terminal shows what it takes away, and asks.
func TestDefineReplaceAsks(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "define", "gpu/pool", "--units", "0,1,2,3")
	tr.does(t, 0, "acquire", "gpu/pool", "--slots", "3", "--id", "g-1", "--holder", "ann", "--ttl", "1h")
	server := []string{"LEASEHOLD_SERVER=" + tr.Getenv("LEASEHOLD_SERVER"), "TERM=dumb"}
	for _, c := range []struct {
		answer string
		code   int
		units  string
	}{{"no", 64, `"units":["0","1","2","3"]`}, {"yes", 0, `"units":["0","1"]`}} {
		p := openPTY(t, server, "define", "gpu/pool", "--units", "0,1", "--replace")
		p.until("ann keeps unit 2 until it is released\r\nType \"yes\" to do it: ")
		p.types(c.answer + "\n")
		p.ends(c.code)
		tr.does(t, 0, "definitions", "--for", "gpu/pool", "-o", "json")
		if said := tr.out.String(); !strings.Contains(said, c.units) {
			t.Errorf("after %q the units are %s", c.answer, said)
		}
	}
}

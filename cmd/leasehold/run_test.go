package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A stage is a server and a directory for real processes.
type stage struct {
	*testing.T
	dir    string
	server *testServer
	url    string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return &stage{t, t.TempDir(), s, "http://" + s.address}
}

// A player is a leasehold that runs a command.
type player struct {
	*exec.Cmd
	stage *stage
	err   lockedBuffer
}

// plays starts "leasehold ARG...".
func (s *stage) plays(args ...string) *player {
	s.Helper()
	p := s.prepares(args...)
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *stage) prepares(args ...string) *player {
	p := &player{Cmd: exec.Command("leasehold", args...), stage: s}
	p.Dir, p.Stderr = s.dir, &p.err
	p.Env = append(os.Environ(), "LEASEHOLD_SERVER="+s.url, "GORACE=atexit_sleep_ms=0")
	s.Cleanup(func() {
		if p.Process != nil && p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// ends waits until it has ended and wants a code of it.
func (p *player) ends(code int) {
	p.stage.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.stage.Fatal(err)
		}
	case <-time.After(patienceOfScripts):
		_ = p.Process.Kill()
		<-ended
		p.stage.Fatalf("it does not end:\n%s", p.err.String())
	}
	if got := p.ProcessState.ExitCode(); got != code {
		p.stage.Fatalf("it ended with code %d, want %d:\n%s", got, code, p.err.String())
	}
}

// says wants a line of what it said.
func (p *player) says(pattern string) {
	p.stage.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(p.err.String()) {
		p.stage.Errorf("it did not say %q:\n%s", pattern, p.err.String())
	}
}

func (p *player) signal(sig syscall.Signal) {
	p.stage.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.stage.Fatal(err)
	}
}

// A lockedBuffer is written by a process and read by a test.
type lockedBuffer struct {
	mu     sync.Mutex // guards what follows
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// soon waits until something is so.
func (s *stage) soon(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(patienceOfScripts); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it did not happen: %s", what)
		}
	}
}

// file waits for a whole line in a file, and returns the last.
func (s *stage) file(name string) (line string) {
	s.Helper()
	s.soon("something in "+name, func() bool {
		b, _ := os.ReadFile(filepath.Join(s.dir, name))
		lines := strings.Split(string(b), "\n")
		if len(lines) < 2 {
			return false
		}
		line = lines[len(lines)-2]
		return true
	})
	return line
}

func (s *stage) number(name string) int {
	s.Helper()
	n, err := strconv.Atoi(s.file(name))
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// gone waits until the process has ended whose number is in a file.
func (s *stage) gone(name string) {
	s.Helper()
	pid := s.number(name)
	s.soon("the end of the process of "+name, func() bool { return !alive(pid) })
}

// alive reports whether a process runs. One that ended and nobody waited for does not.
func alive(pid int) bool {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}

func (s *stage) caller() *v1.Caller {
	s.Helper()
	c, err := v1.NewCaller(v1.CallerConfig{Server: s.url})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.CloseIdle)
	return c
}

// lastEnd is when the last lease of a resource ended, and how.
func (s *stage) lastEnd(resource string) (at time.Time, how string) {
	s.Helper()
	s.soon("the end of the lease", func() bool {
		r, err := s.caller().Resource(context.Background(), resource, 0)
		if err != nil || len(r.Holders) > 0 || r.Last == nil {
			return false
		}
		at, how = r.Last.At.Time, r.Last.How
		return true
	})
	return at, how
}

// beating is a script that writes down, again and again, that it is still at work.
const beating = `trap "echo x >told" TERM; echo $$ >pid; while :; do date +%s%N >>beats; sleep 0.02; done`

func (s *stage) lastBeat() time.Time {
	s.Helper()
	n, err := strconv.ParseInt(s.file("beats"), 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return time.Unix(0, n)
}

// briefly is a run whose lease is soon lost, but not because the machine is busy.
func briefly(args ...string) []string {
	return append([]string{"run", "--ttl", "3s", "--kill-after", "1s"}, args...)
}

// Fault: the wrapper gets a signal and leaves the command behind, or passes only some on.
func TestRunPassesSignalsOn(t *testing.T) {
	s := newStage(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		name := strconv.Itoa(int(sig))
		p := s.plays("run", name, "--", "sh", "-c",
			`trap "exit 40" `+name+`; echo $$ >pid`+name+`; while :; do sleep 0.01; done`)
		s.file("pid" + name)
		p.signal(sig)
		p.ends(40)
		if _, how := s.lastEnd(name); how != "released" {
			t.Errorf("after %v the lease ended as %s", sig, how)
		}
	}
}

// Signals that the command does not catch end it, and its code is 128+n.
func TestRunEndsWithItsCommand(t *testing.T) {
	s := newStage(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1} {
		name := strconv.Itoa(int(sig))
		p := s.plays("run", name, "--", "sh", "-c", "ulimit -c 0; echo $$ >pid"+name+"; exec sleep 60")
		s.file("pid" + name)
		p.signal(sig)
		p.ends(128 + int(sig))
	}
}

// Fault: the shell around the work dies, and the work goes on without its lease.
func TestRunStopsWhatItsShellLeft(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "a", "--", "sh", "-c", "echo $$ >shell; sleep 60 & echo $! >pid; wait")
	s.file("pid")
	if err := syscall.Kill(s.number("shell"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.ends(137)
	if alive(s.number("pid")) {
		t.Error("what the shell had started goes on")
	}
	p.says(`^sh has ended and left others running: they are told to stop`)
}

// Fault: the wrapper is killed, and the command goes on, or what the command started.
func TestRunsDeathEndsTheCommand(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "a", "--", "sh", "-c", "echo $$ >pid; (trap '' TERM HUP; while :; do sleep 0.05; done) & echo "+
		"$! >inner; wait")
	s.file("inner")
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	s.gone("pid")
	s.gone("inner")
}

// A wrapper that is stopped can kill nobody. The guard does, before the lease ends.
func TestRunIsStoppedAndTheCommandEnds(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "--ttl", "2s", "a", "--", "sh", "-c", beating)
	s.lastBeat()
	p.signal(syscall.SIGSTOP)
	s.gone("pid")
	at, _ := s.lastEnd("a")
	if !s.lastBeat().Before(at) {
		t.Errorf("the command worked until %v; its lease ended at %v", s.lastBeat(), at)
	}
	p.signal(syscall.SIGCONT)
	p.ends(76)
}

// Fault: the loss is noticed late. The door of the server is shut, and its leases go on to
// expire behind it.
func TestRunStopsTheCommandBeforeItsLeaseEnds(t *testing.T) {
	s := newStage(t)
	p := s.plays(briefly("a", "--", "sh", "-c", beating)...)
	s.lastBeat()
	s.server.stop()
	p.ends(76)
	p.says(`^the lease is about to end: sh was told to stop$`)
	p.says(`^the lease is over: sh was killed$`)
	p.says(`^leasehold: a: the lease could not be renewed: .*cannot reach the server`)
	p.says(`^leasehold: sh was stopped$`)
	s.file("told")
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	at, how := s.lastEnd("a")
	if !s.lastBeat().Before(at) || how != "session expired" {
		t.Errorf("the command worked until %v; its lease ended (%s) at %v", s.lastBeat(), how, at)
	}
}

// A command that stops when it is told to is never killed.
func TestRunTellsTheCommandInTime(t *testing.T) {
	s := newStage(t)
	p := s.plays(briefly("a", "--", "sh", "-c", `trap "exit 0" TERM; echo $$ >pid; while :; do sleep 0.01; done`)...)
	s.file("pid")
	s.server.stop()
	p.ends(76)
	p.says(`^leasehold: a: the lease could not be renewed: .*cannot reach the server`)
	if strings.Contains(p.err.String(), "killed") {
		t.Errorf("it was killed:\n%s", p.err.String())
	}
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
}

// A server that is away for less than the lease lasts costs nothing.
func TestRunSurvivesAShortOutage(t *testing.T) {
	s := newStage(t)
	p := s.plays(briefly("a", "--", "sh", "-c", `echo $$ >pid; until test -e go; do sleep 0.01; done; exit 6`)...)
	s.file("pid")
	s.server.stop()
	began := time.Now()
	s.soon("half a TTL", func() bool { return time.Since(began) > 800*time.Millisecond })
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	// It is renewed again, past what it had.
	s.soon("two TTLs", func() bool { return time.Since(began) > 4*time.Second })
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ends(6)
}

// A real server is killed and stays away for two TTLs.
func TestRunLosesItsServer(t *testing.T) {
	s := newStage(t)
	server := s.plays("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(s.dir, "data"))
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	s.soon("a greeting", func() bool { s.url = address.FindString(server.err.String()); return s.url != "" })
	p := s.plays(briefly("a", "--", "sh", "-c", beating)...)
	s.lastBeat()
	server.signal(syscall.SIGKILL)
	server.ends(-1)
	killed := time.Now()
	p.ends(76)
	// The last answer was given before it was killed, and counts for at most a TTL.
	if last := s.lastBeat(); last.After(killed.Add(3 * time.Second)) {
		t.Errorf("the command went on until %v after the server was killed", last.Sub(killed))
	}
	s.file("told")
}

// Fault: the command is not stopped when the lease is taken away.
func TestRunStopsTheCommandAtABreak(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "a", "--", "sh", "-c", beating)
	s.lastBeat()
	if _, err := s.caller().Break(t.Context(), v1.BreakRequest{Resource: "a", Token: 1, Period: new(v1.Duration),
		By: "ann", Reason: "stuck"}); err != nil {
		t.Fatal(err)
	}
	p.ends(76)
	p.says(`^leasehold: a: the lease was broken \(token 1\) by ann: stuck$`)
	if alive(s.number("pid")) {
		t.Error("the command goes on")
	}
}

// A break that leaves a period is told in time, and honoured.
func TestRunIsToldOfABreak(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "--ttl", "20s", "--kill-after", "1500ms", "a", "--", "sh", "-c", beating)
	s.lastBeat()
	period := v1.Duration(3 * time.Second)
	if _, err := s.caller().Break(t.Context(), v1.BreakRequest{Resource: "a", Token: 1, Period: &period, By: "ann",
		Reason: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	broken := time.Now()
	s.file("told")
	if early := time.Until(broken.Add(time.Duration(period))); early < 0 || early > 2*time.Second {
		t.Errorf("it was told %v before the break", early)
	}
	p.ends(76)
	p.says(`^ann breaks the lease on a in (3s|2\.\ds): maintenance$`)
	p.says(`^leasehold: a: the lease was broken by ann: maintenance$`)
	if at, _ := s.lastEnd("a"); !s.lastBeat().Before(at) {
		t.Errorf("the command worked until %v, and the lease was broken at %v", s.lastBeat(), at)
	}
}

// What others say to the holder reaches the person at the terminal.
func TestRunShowsMessages(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "a", "--", "sh", "-c", "echo $$ >pid; until test -e go; do sleep 0.01; done")
	s.file("pid")
	if _, err := s.caller().Ask(t.Context(), v1.AskRequest{Resource: "a", Message: "five minutes?",
		By: "bob"}); err != nil {
		t.Fatal(err)
	}
	s.soon("a message", func() bool { return strings.Contains(p.err.String(), "bob asks for a: five minutes?\n") })
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
}

// Nobody reads the output of run any longer: that is no reason to stop the command.
func TestRunTalksToNobody(t *testing.T) {
	s := newStage(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	p := s.prepares("run", "a", "--", "sh", "-c", "sleep 60 & exit 3") // which is worth a word
	p.Stderr = writer
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	p.ends(3)
}

// Run is stopped past its TTL and goes on: the first thing that it does is to kill a command that
// no longer has a lease.
func TestRunWakesUpLate(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "--ttl", "500ms", "a", "--", "sh", "-c",
		`trap "echo x >told" TERM; echo $$ >pid; while :; do sleep 0.02; done`)
	s.file("pid")
	p.signal(syscall.SIGSTOP)
	s.lastEnd("a")
	p.signal(syscall.SIGCONT)
	p.ends(76)
	if alive(s.number("pid")) {
		t.Error("the command goes on")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "told")); err == nil {
		t.Error("it was asked to stop, when it was too late to ask")
	}
	p.says(`^leasehold: a: the lease expired \(token 1\)`)
}

// When a run is killed while it waits or holds, the next in the queue follows.
func TestRunsFollowOneAnother(t *testing.T) {
	s := newStage(t)
	var all []*player
	for range 5 {
		all = append(all, s.plays("run", "-q", "a", "--", "sh", "-c",
			`test ! -e busy || echo x >>both; : >busy; sleep 0.05; rm busy; echo x >>done`))
	}
	for _, p := range all {
		p.ends(0)
	}
	b, _ := os.ReadFile(filepath.Join(s.dir, "done"))
	if _, err := os.Stat(filepath.Join(s.dir, "both")); err == nil || string(b) != strings.Repeat("x\n", 5) {
		t.Errorf("two were at work at the same time, or not all: %q", b)
	}
}

// Elect stops its command when the lead is lost, and leads again when it can.
func TestElectLeadsAgain(t *testing.T) {
	s := newStage(t)
	p := s.plays("elect", "--ttl", "3s", "--kill-after", "1s", "a", "--", "sh", "-c",
		`echo $LEASEHOLD_TOKEN >>terms; echo $$ >>pids; until test -e go; do sleep 0.02; done; exit 8`)
	s.file("pids")
	first := s.number("pids")
	s.server.stop()
	s.soon("the end of the command", func() bool { return !alive(first) })
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	s.soon("a second term", func() bool { return s.number("terms") > 1 })
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ends(8)
	p.says(`^leasehold: sh was stopped$`)
}

// Two runs each hold what a run inside the other one waits for. The second wait is refused,
// and both come to an end.
func TestNestedRunsDoNotWaitForEachOther(t *testing.T) {
	s := newStage(t)
	inside := func(mine, theirs string) *player {
		script := "echo >" + mine + "; until test -e " + theirs + "; do sleep 0.01; done; leasehold run " + theirs +
			" -- true"
		return s.plays("run", mine, "--", "sh", "-c", script)
	}
	p, q := inside("a", "b"), inside("b", "a")
	impatient := time.AfterFunc(patienceOfScripts, func() { _ = errors.Join(p.Process.Kill(), q.Process.Kill()) })
	defer impatient.Stop()
	for _, one := range []*player{p, q} {
		_ = one.Wait()
		if code := one.ProcessState.ExitCode(); code != 0 && code != cli.ExitUsage {
			t.Errorf("it ended with code %d:\n%s", code, one.err.String())
		}
	}
	if said := p.err.String() + q.err.String(); !strings.Contains(said, "waits for") {
		t.Errorf("nobody said who waits for whom:\n%s", said)
	}
}

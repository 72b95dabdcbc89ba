package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/internal/testsignal"
)

// A lease is one whose end the test decides.
type lease struct {
	mu    sync.Mutex // guards what follows
	until time.Time
	gone  chan struct{}
}

func newLease(d time.Duration) *lease {
	return &lease{until: time.Now().Add(d), gone: make(chan struct{})}
}

func (l *lease) Lost() <-chan struct{} { return l.gone }

func (l *lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Until(l.until))
}

func (l *lease) lasts(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(d)
}

// lose ends it, and says so at once.
func (l *lease) lose() {
	l.lasts(0)
	close(l.gone)
}

// A trial runs shell scripts in a directory of their own.
type trial struct {
	t       *testing.T
	dir     string
	lease   *lease
	signals chan os.Signal
	ended   chan End

	mu       sync.Mutex // guards what follows
	warnings []Warning
}

func begin(t *testing.T, script string, more func(*Run)) *trial {
	t.Helper()
	tr := &trial{t: t, dir: t.TempDir(), lease: newLease(time.Hour), signals: make(chan os.Signal, 8),
		ended: make(chan End, 1)}
	r := Run{
		Command: Command{Argv: []string{"sh", "-c", "cd " + tr.dir + "\n" + script}, Env: os.Environ()},
		Lease:   tr.lease, KillAfter: time.Second, Signals: tr.signals, Warn: tr.warned,
	}
	if more != nil {
		more(&r)
	}
	go func() {
		end, err := r.Do()
		if err != nil {
			t.Error(err)
		}
		r.Guard.Dismiss()
		tr.ended <- end
	}()
	return tr
}

func (tr *trial) warned(w Warning) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.warnings = append(tr.warnings, w)
}

// file waits until a file has something in it.
func (tr *trial) file(name string) string {
	tr.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(tr.dir, name)); strings.HasSuffix(string(b), "\n") {
			return strings.TrimSpace(string(b))
		}
	}
	tr.t.Fatalf("%s was never written", name)
	return ""
}

func (tr *trial) wrote(name string) bool {
	_, err := os.Stat(filepath.Join(tr.dir, name))
	return err == nil
}

func (tr *trial) wants(want End, warnings ...Warning) {
	tr.t.Helper()
	select {
	case end := <-tr.ended:
		if end != want {
			tr.t.Errorf("it ended as %+v, want %+v", end, want)
		}
	case <-time.After(10 * time.Second):
		tr.t.Fatal("it does not end")
	}
	if !slices.Equal(tr.warnings, warnings) {
		tr.t.Errorf("it warned of %v, want %v", tr.warnings, warnings)
	}
}

// isGone reports whether a process whose number is in a file has ended, or soon has.
func (tr *trial) isGone(name string) {
	tr.t.Helper()
	pid, err := strconv.Atoi(tr.file(name))
	if err != nil {
		tr.t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(2 * time.Millisecond) {
		if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			tr.t.Fatalf("the process of %s lives on", name)
		}
	}
}

func TestCodes(t *testing.T) {
	for script, want := range map[string]End{
		"exit 0":        {},
		"exit 1":        {Code: 1},
		"exit 255":      {Code: 255},
		"kill -TERM $$": {Code: 143, Signal: syscall.SIGTERM},
		"kill -KILL $$": {Code: 137, Signal: syscall.SIGKILL},
	} {
		begin(t, script, nil).wants(want)
	}
}

func TestNoSuchCommand(t *testing.T) {
	for _, name := range []string{"no-such-command", "/no/such/file", "run_test.go", "/"} {
		_, err := Run{Command: Command{Argv: []string{name}}, Lease: newLease(time.Hour)}.Do()
		if err == nil {
			t.Errorf("%s was run", name)
		}
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		tr := begin(t, `trap "exit 42" `+strconv.Itoa(int(s))+`; echo >ready; while :; do sleep 0.01; done`, nil)
		tr.file("ready")
		tr.signals <- s
		tr.wants(End{Code: 42})
	}
}

// What one program agrees upon with another kills those who know nothing of it.
func TestUserSignalsGoToTheCommandAlone(t *testing.T) {
	tr := begin(t, `trap "echo >heard" USR1; sleep 30 & echo $! >pid; until test -e heard; do sleep 0.01; done; kill $! && exit 3`, nil)
	tr.file("pid")
	// The short sleeps of the loop are in the same group.
	tr.signals <- syscall.SIGUSR1
	tr.wants(End{Code: 3})
}

func TestToldAndThenKilled(t *testing.T) {
	t.Parallel()
	tr := begin(t, `trap "echo >told" TERM; echo >ready; while :; do sleep 0.01; done`, nil)
	tr.file("ready")
	tr.lease.lasts(1200 * time.Millisecond)
	tr.file("told")
	if left := tr.lease.Remaining(); left > time.Second {
		t.Errorf("it was told with %v left", left)
	}
	tr.wants(End{Code: 137, Stopped: true, Signal: syscall.SIGKILL}, Told, Killed)
	if late := time.Since(tr.lease.until); late > time.Second {
		t.Errorf("it ended %v after the lease", late)
	}
}

func TestToldInTime(t *testing.T) {
	t.Parallel()
	tr := begin(t, `trap "exit 5" TERM; echo >ready; while :; do sleep 0.01; done`,
		func(r *Run) { r.KillAfter = 10 * time.Second })
	tr.file("ready")
	tr.lease.lasts(9 * time.Second)
	tr.wants(End{Code: 5, Stopped: true}, Told)
}

// A server that comes back after the command was told to stop does not let it go on.
func TestToldIsTold(t *testing.T) {
	t.Parallel()
	tr := begin(t, `trap "echo >told" TERM; echo >ready; while :; do sleep 0.01; done`, nil)
	tr.file("ready")
	tr.lease.lasts(990 * time.Millisecond)
	tr.file("told")
	tr.lease.lasts(time.Hour)
	tr.wants(End{Code: 137, Stopped: true, Signal: syscall.SIGKILL}, Told, Killed)
}

func TestLostIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	tr := begin(t, `trap "echo >told" TERM; sleep 30 & echo $! >pid; wait`, func(r *Run) { r.KillAfter = time.Minute })
	tr.file("pid")
	tr.lease.lose()
	tr.wants(End{Code: 137, Stopped: true, Signal: syscall.SIGKILL}, Killed)
	tr.isGone("pid")
	if tr.wrote("told") {
		t.Error("it was asked, although somebody else may be at work already")
	}
}

// The shell ends and what it started would go on.
func TestOrphansAreStopped(t *testing.T) {
	t.Parallel()
	tr := begin(t, `sleep 30 & echo $! >pid; exit 7`, nil)
	tr.wants(End{Code: 7}, Orphans)
	tr.isGone("pid")
}

func TestDeafOrphansAreKilled(t *testing.T) {
	t.Parallel()
	tr := begin(t, `(trap "" TERM; echo >ready; while :; do sleep 0.05; done) & echo $! >pid; until test -e ready; do sleep 0.01; done; exit 7`, nil)
	tr.wants(End{Code: 7}, Orphans)
	tr.isGone("pid")
}

// A stopped command is woken up to hear that it has to end.
func TestStoppedCommandHears(t *testing.T) {
	t.Parallel()
	tr := begin(t, `trap "exit 5" TERM; echo $$ >pid; kill -STOP $$; echo >on; while :; do sleep 0.01; done`,
		func(r *Run) { r.KillAfter = 10 * time.Second })
	tr.file("pid")
	tr.lease.lasts(9 * time.Second)
	tr.wants(End{Code: 5, Stopped: true}, Told)
}

// The one who is in a session of its own is no part of the terminal's.
func TestApart(t *testing.T) {
	t.Parallel()
	tr := begin(t, `echo $$ >pid; sleep 30 & wait`, func(r *Run) { r.Apart = true })
	pid, _ := strconv.Atoi(tr.file("pid"))
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("session %d of process %d, %v", sid, pid, err)
	}
	tr.lease.lose()
	tr.wants(End{Code: 137, Stopped: true, Signal: syscall.SIGKILL}, Killed)
}

// The test's own binary is the guard, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "guard" {
		Watch(os.Stdin, nil)
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "begin" {
		os.Exit(Begin(os.Args[2:]))
	}
	testsignal.Heed()
	os.Exit(m.Run())
}

// TestGateStaysShut: a command whose guard was never told of it does not begin.
func TestGateStaysShut(t *testing.T) {
	path, err := Myself()
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(t.TempDir(), "begun")
	waits := exec.Command(path, "begin", "3", "0", "/bin/sh", "sh", "-c", "echo >"+begun)
	waits.ExtraFiles = []*os.File{theirs}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	ours.Close() // as if whoever began it were gone
	if err := waits.Wait(); waits.ProcessState.ExitCode() != 137 {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(begun); err == nil {
		t.Error("it began all the same")
	}
}

func guarded(r *Run) {
	path, err := Myself()
	if err != nil {
		panic(err)
	}
	r.Guard = StartGuard([]string{path, "child.test", "guard"})
	r.Gate = []string{path, "child.test", "begin"}
}

func TestGuardIsDismissed(t *testing.T) {
	begin(t, "exit 3", guarded).wants(End{Code: 3})
}

// Orders that end without a word are those of somebody who was killed.
func TestGuardKills(t *testing.T) {
	for name, orders := range map[string]string{
		"at the end of its orders": "group %d\n",
		"at the end of the lease":  "group %d\nuntil 1\n",
	} {
		sleeper := exec.Command("sleep", "60")
		sleeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); (&watcher{}).follow(in) }()
		fmt.Fprintf(out, orders, sleeper.Process.Pid)
		if !strings.Contains(orders, "until") {
			out.Close()
		}
		_ = sleeper.Wait()
		out.Close()
		<-done
		if s := sleeper.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
			t.Errorf("%s: the group ended as %v", name, s)
		}
	}
}

// A guard that was sent home, or knows no group, kills nobody.
func TestGuardLetsLive(t *testing.T) {
	for _, orders := range []string{"group 1\nuntil 1\n", "until 1\n", "group x\n", "group -1\n", "done\ngroup 5\n",
		"nonsense\n\n", ""} {
		(&watcher{}).follow(strings.NewReader(orders))
	}
}

// A fading lease is lost at the second look.
type fading struct {
	looks int
	gone  chan struct{}
}

func (f *fading) Lost() <-chan struct{} { return f.gone }

func (f *fading) Remaining() time.Duration {
	if f.looks++; f.looks > 1 {
		return 0
	}
	return time.Hour
}

// A lease that was lost before its command began begins nothing, whenever that was.
func TestALostLeaseBeginsNothing(t *testing.T) {
	for name, change := range map[string]func(*Run){
		"without a gate":   func(r *Run) { r.Lease.(*lease).lose() },
		"before it starts": func(r *Run) { guarded(r); r.Lease.(*lease).lose() },
		"at the gate":      func(r *Run) { guarded(r); r.Lease = &fading{gone: make(chan struct{})} },
	} {
		t.Run(name, func(t *testing.T) {
			tr := begin(t, "echo >begun", change)
			if end := <-tr.ended; !end.Stopped || !end.Never {
				t.Errorf("it ended as %+v", end)
			}
			if tr.wrote("begun") {
				t.Error("it began")
			}
		})
	}
}

// A stuck lease answers nobody any more once the command has begun: as if this process had
// been stopped at that moment.
type stuck struct {
	*lease
	begun string
	freed chan struct{}
}

// answers is how long a stuck lease takes to answer: by as much earlier is the end that the guard is told.
const answers = 300 * time.Millisecond

func (s *stuck) Remaining() time.Duration {
	// A command whose gate is open writes the file soon; one at the gate never does.
	for end := time.Now().Add(answers); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(s.begun); err == nil {
			<-s.freed
		}
	}
	return s.lease.Remaining()
}

// The guard knows the deadline before the command begins: nobody has to tell it afterwards.
func TestGuardKnowsTheDeadlineAtTheGate(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	tr := begin(t, "echo $$ >pid; while :; do sleep 0.05; done", func(r *Run) {
		guarded(r)
		r.Lease.(*lease).lasts(3 * time.Second)
		dir := strings.TrimPrefix(strings.SplitN(r.Argv[2], "\n", 2)[0], "cd ")
		r.Lease = &stuck{r.Lease.(*lease), filepath.Join(dir, "pid"), freed}
	})
	tr.isGone("pid")
	left := tr.lease.Remaining()
	if left > 2*answers {
		t.Errorf("it was killed %v before its time", left)
	}
	time.Sleep(left) // so that it ends as one whose lease is over
	close(freed)
	tr.wants(End{Code: 137, Stopped: true, Signal: syscall.SIGKILL}, Killed)
}

// What stands at the gate when its time is over does not begin, whoever opens it.
func TestGateOpensTooLate(t *testing.T) {
	if now() == 0 {
		t.Skip("two processes have no clock in common here")
	}
	path, err := Myself()
	if err != nil {
		t.Fatal(err)
	}
	for _, until := range []time.Duration{now() - 1, now() + time.Hour} {
		theirs, ours, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		waits := exec.Command(path, "begin", "3", "0", "/bin/sh", "sh", "-c", "exit 5")
		waits.ExtraFiles = []*os.File{theirs}
		if err := waits.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		(&process{gate: ours}).begin(until)
		_ = waits.Wait()
		want := 5
		if until < now() {
			want = 137
		}
		if code := waits.ProcessState.ExitCode(); code != want {
			t.Errorf("it ended with %d, want %d", code, want)
		}
	}
}

// A slow lease is one whose holder is paused right after it has looked at what remains.
type slow struct{ ends time.Duration }

func (l slow) Lost() <-chan struct{} { return nil }

func (l slow) Remaining() time.Duration {
	left := l.ends - now()
	time.Sleep(20 * time.Millisecond)
	return max(0, left)
}

// What others are told is a moment at which the lease has not ended, however long we were paused before that is told.
func TestNobodyIsToldALaterEnd(t *testing.T) {
	if now() == 0 {
		t.Skip("left out: there is no clock that processes share")
	}
	pipe := func() (*os.File, *os.File) {
		theirs, ours, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = theirs.Close(), ours.Close() })
		return theirs, ours
	}
	gate, opens := pipe()
	orders, tells := pipe()
	ends := now() + time.Minute
	w := watch{Run: Run{Lease: slow{ends}, Guard: &Guard{orders: tells}}, process: &process{gate: opens}}
	if !w.open() {
		t.Fatal("the gate stays closed")
	}
	w.Guard.until = 0
	w.look()
	_ = tells.Close()
	for name, from := range map[string]*os.File{"the gate": gate, "the guard": orders} {
		said, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(said)) {
			var until time.Duration
			if _, err := fmt.Sscan(strings.TrimPrefix(line, "until "), (*int64)(&until)); err != nil || until > ends {
				t.Errorf("%s is told %q, and the lease ends at %d: %v", name, line, ends, err)
			}
		}
	}
}

//go:build linux

package peer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// patience is how long a server may take to answer after its start. It is long because the machine
// may be busy; a server that exits is noticed at once.
const patience = 2 * time.Minute

// A Server is one server and its data. Its methods may be called by any goroutine; what goes wrong
// fails the test.
type Server struct {
	// Address is host:port of what clients connect to.
	Address string

	t     testing.TB
	name  string
	dir   string // the data
	as    *syscall.Credential
	run   []string
	env   []string
	ready func() error   // whether it answers
	quit  syscall.Signal // what ends it in an orderly way; 0: SIGTERM
	log   string         // where its output goes

	mu      sync.Mutex
	process *process.Process
}

// start starts the server and waits until it answers. The test is over if it does not.
func (s *Server) start(t testing.TB) {
	t.Helper()
	startAll(t, []*Server{s})
}

// startAll starts servers that may wait for each other.
func startAll[S interface{ self() *Server }](t testing.TB, servers []S) {
	t.Helper()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i := range servers {
		s := servers[i].self()
		s.t, s.log = t, filepath.Join(t.TempDir(), "output")
		t.Cleanup(s.end)
		all.Go(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			errs[i] = s.launch()
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) self() *Server { return s }

// end is done when the test ends.
func (s *Server) end() {
	s.Kill()
	if s.t.Failed() {
		s.t.Logf("%s at %s wrote:\n%s", s.name, s.Address, s.tail())
	}
}

// launch starts the process and waits until the server answers.
func (s *Server) launch() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(s.run...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = process.StartCommand(cmd); err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; {
		if err = s.ready(); err == nil {
			return nil
		}
		select {
		case <-s.process.Ended():
			return fmt.Errorf("%s exited with code %d", s.name, s.process.Code())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s does not answer after %v: %w", s.name, patience, err)
		}
	}
}

// command prepares a program that runs as the server's user, in its environment.
func (s *Server) command(line ...string) *exec.Cmd {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

// output runs a program to its end, as the server's user, and returns what it printed.
func (s *Server) output(line ...string) (string, error) {
	out, err := s.command(line...).CombinedOutput()
	out = bytes.TrimSpace(out)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(line[0]), err, out)
	}
	return string(out), err
}

// tail returns the last of what the server printed.
func (s *Server) tail() []byte {
	b, _ := os.ReadFile(s.log)
	return b[max(0, len(b)-4000):]
}

// Dir returns the directory that holds the server's data.
func (s *Server) Dir() string { return s.dir }

// Running reports whether there is a process, paused or not.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.Runs()
}

// Pids returns the server's processes, parents first; nil if it does not run.
func (s *Server) Pids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.Runs() {
		return nil
	}
	return tree(s.process.Pid())
}

// Kill ends the server and all its processes at once, by SIGKILL.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if !s.process.Runs() {
		return
	}
	// Stopped first, none of them can start or end another meanwhile.
	pids := signalTree(s.process.Pid(), syscall.SIGSTOP)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.process.Ended()
	for _, pid := range pids {
		s.check(awaitEnd(pid))
	}
}

// Stop ends the server in its own orderly way.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

func (s *Server) stop() {
	if !s.process.Runs() {
		return
	}
	s.process.Signal(cmp.Or(s.quit, syscall.SIGTERM))
	select {
	case <-s.process.Ended():
	case <-time.After(patience):
		s.check(fmt.Errorf("%s does not stop", s.name))
		s.kill()
	}
}

// Restart starts the server again, with its data and at its address, and waits until it answers. A
// server that runs is killed first.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	s.check(s.launch())
}

// Pause stops the server and all its processes where they are, by SIGSTOP. Its connections stay
// open, and nobody gets an answer until [Server.Resume].
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.Runs() {
		s.check(fmt.Errorf("%s does not run: it cannot be sent %v", s.name, sig))
		return
	}
	signalTree(s.process.Pid(), sig)
}

// Copy stops the server in its orderly way, copies its data, and starts it again. The copy is for
// [Server.Restore].
func (s *Server) Copy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	to := filepath.Join(newDir(s.t, s.as), "copy")
	s.check(copyDir(s.dir, to))
	s.check(s.launch())
	return to
}

// Restore kills the server, puts an older copy in the place of its data, and starts it again: what
// happened since the copy was made is forgotten.
func (s *Server) Restore(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	s.check(errors.Join(os.RemoveAll(s.dir), copyDir(from, s.dir)))
	s.check(s.launch())
}

// copyDir keeps owners and modes.
func copyDir(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// check fails the test but lets it go on, since a goroutine other than the test's may be calling.
func (s *Server) check(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

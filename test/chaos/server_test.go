//go:build linux

package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/faultfs"
	"github.com/leasehold/leasehold/test/process"
)

// A server is one process after the other on the same data.
type server struct {
	name   string
	listen string // for clients
	peer   string // for other servers
	dir    string // everything of it on the real disk
	gate   string // where other servers reach it
	args   []string
	binary string

	mu      sync.Mutex // guards what follows
	disk    *faultfs.FS
	life    int // counts the disks that it had
	release func()
	process *process.Process // one life; nil before the first
	doomed  bool             // it was done something to that may end it
	said    *tail
}

// A tail is the last lines of something, with a file that has all.
type tail struct {
	mu    sync.Mutex // guards what follows
	lines []string
	begun string // a line that has no end yet
	file  *os.File
}

// Write takes what a process says.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := strings.Split(t.begun+string(b), "\n")
	t.begun = whole[len(whole)-1]
	for _, line := range whole[:len(whole)-1] {
		t.keep(line)
	}
	return len(b), nil
}

// add adds a line of our own.
func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(line)
}

func (t *tail) keep(line string) {
	fmt.Fprintln(t.file, line)
	if t.lines = append(t.lines, line); len(t.lines) > 20 {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// has reports whether a line with a text is among the last.
func (t *tail) has(text string) bool { return strings.Contains(t.String(), text) }

// newServer prepares a server; it does not run yet.
func newServer(t testing.TB, name, binary string) *server {
	t.Helper()
	s := &server{name: name, dir: filepath.Join(t.TempDir(), name), binary: binary, release: func() {}}
	file, err := os.Create(filepath.Join(reportDir(t), name+".log"))
	if err == nil {
		err = os.MkdirAll(s.mount(), 0o700)
	}
	if err == nil {
		err = os.MkdirAll(s.backing(), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.said = &tail{file: file}
	s.listen, s.peer = process.Reserve(t), process.Reserve(t)
	t.Cleanup(func() {
		s.kill()
		s.unmount(t)
		_ = file.Close()
	})
	if faultfs.Available() == nil {
		s.mountDisk(t)
	}
	return s
}

func (s *server) mount() string   { return filepath.Join(s.dir, "mount") }
func (s *server) backing() string { return filepath.Join(s.dir, fmt.Sprint("disk", s.life)) }
func (s *server) data() string    { return filepath.Join(s.mount(), "data") }

func (s *server) mountDisk(t testing.TB) {
	t.Helper()
	disk, err := faultfs.Mount(s.backing(), s.mount())
	if err != nil {
		t.Logf("left out: %v", err)
		return
	}
	s.disk = disk
}

func (s *server) unmount(t testing.TB) {
	if s.disk == nil {
		return
	}
	if err := s.disk.Unmount(); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	s.disk = nil
}

// start begins a life.
func (s *server) start(more []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := append([]string{"serve", "--listen", s.listen, "--data", s.data(), "--insecure"}, more...)
	s.said.add("--- started: " + strings.Join(args, " "))
	p, err := process.Start(s.said, s.binary, args...)
	if err != nil {
		return err
	}
	s.process, s.doomed = p, false
	return nil
}

// pid is 0 if it does not run.
func (s *server) pid() int {
	if p := s.current(); p.Runs() {
		return p.Pid()
	}
	return 0
}

// current is the process, if there was one.
func (s *server) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *server) runs() bool { return s.current().Runs() }

// doom says that whatever ends the process now is our doing.
func (s *server) doom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomed = true
}

// died reports whether the process ended without our doing.
func (s *server) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.process.Runs() && !s.doomed
}

func (s *server) signal(sig syscall.Signal) { s.current().Signal(sig) }

// kill ends the process at once. A sync that hangs would keep it from ending.
func (s *server) kill() {
	s.doom()
	s.signal(syscall.SIGKILL)
	s.calm()
	if p := s.current(); p != nil {
		<-p.Ended()
	}
}

// loseUnsynced takes away what the server had written and not synced. It must not run.
func (s *server) loseUnsynced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk == nil {
		return nil
	}
	old := s.backing()
	s.life++
	if err := s.disk.Image(s.backing()); err != nil {
		return err
	}
	if err := s.disk.Unmount(); err != nil {
		return err
	}
	var err error
	if s.disk, err = faultfs.Mount(s.backing(), s.mount()); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// failSyncs has every sync fail from now on.
func (s *server) failSyncs() {
	s.doom()
	s.disk.OnSync(func(string, bool) error { return syscall.EIO })
}

// hangSyncs has every sync hang until calm.
func (s *server) hangSyncs() {
	s.doom()
	gone := make(chan struct{})
	s.mu.Lock()
	s.release = sync.OnceFunc(func() { close(gone) })
	s.mu.Unlock()
	s.disk.OnSync(func(string, bool) error {
		<-gone
		return nil
	})
}

// calm makes the disk well.
func (s *server) calm() {
	s.mu.Lock()
	release, disk := s.release, s.disk
	s.mu.Unlock()
	if disk != nil {
		disk.OnSync(nil)
		disk.Unlimit()
	}
	release()
}

// dispose takes away the disk of a server that is no longer needed.
func (s *server) dispose() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk == nil {
		return nil
	}
	err := s.disk.Unmount()
	s.disk = nil
	return errors.Join(err, os.RemoveAll(s.dir))
}

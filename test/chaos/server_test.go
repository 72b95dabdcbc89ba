//go:build linux

package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/faultfs"
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
	process *process
	doomed  bool // it was done something to that may end it
	said    *tail
}

// A process is one life of a server.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // then
}

// A tail is the last lines of something, with a file that has all.
type tail struct {
	mu    sync.Mutex // guards what follows
	lines []string
	file  *os.File
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
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

// has tells whether a line with a text is among the last.
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
	s.listen, s.peer = reserve(t), reserve(t)
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

// reserve finds an address at which nobody else will listen: on a loopback address of
// its own, out of sixteen million.
func reserve(t testing.TB) string {
	t.Helper()
	for {
		ip := net.IPv4(127, byte(1+rand.N(254)), byte(rand.N(256)), byte(1+rand.N(254)))
		listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			continue
		}
		address := listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
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
	cmd := exec.Command(s.binary, args...)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	s.said.add("--- started: " + strings.Join(args, " "))
	p := &process{cmd: cmd, ended: make(chan struct{})}
	s.process, s.doomed = p, false
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.said.add(lines.Text())
		}
		p.err = cmd.Wait()
		s.said.add(fmt.Sprintf("--- ended: %v", p.err))
		close(p.ended)
	}()
	return nil
}

// pid is 0 if it does not run.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.runs() {
		return 0
	}
	return s.process.cmd.Process.Pid
}

func (p *process) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// current is the process, if there was one.
func (s *server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *server) runs() bool {
	p := s.current()
	return p != nil && p.runs()
}

// doom says that whatever ends the process now is our doing.
func (s *server) doom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomed = true
}

// died tells whether the process ended without our doing.
func (s *server) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.process.runs() && !s.doomed
}

func (s *server) signal(sig syscall.Signal) {
	if p := s.current(); p != nil && p.runs() {
		_ = p.cmd.Process.Signal(sig)
	}
}

// kill ends the process at once. A sync that hangs would keep it from ending.
func (s *server) kill() {
	s.doom()
	s.signal(syscall.SIGKILL)
	s.calm()
	if p := s.current(); p != nil {
		<-p.ended
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

// dispose takes away the disk of a server that is not needed any more.
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

// code is the exit code of a process that ended.
func (p *process) code() int {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

//go:build linux

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/test/process"
)

// patience is how long a thing may take that must happen. It is long because nothing here
// is about speed.
const patience = time.Minute

var binaries struct {
	sync.Once
	dir       string
	old, tree string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
	os.Exit(code)
}

// build returns the binaries of the newest release and of this tree, and makes them once.
func build(t *testing.T) (old, tree string) {
	t.Helper()
	binaries.Do(func() {
		var err error
		if binaries.dir, err = os.MkdirTemp("", "upgrade"); err != nil {
			t.Fatal(err)
		}
		binaries.old = process.BuildRelease(t, binaries.dir)
		binaries.tree = process.BuildTree(t, binaries.dir)
	})
	if binaries.tree == "" {
		t.Skip("left out: there are no binaries to run, as another test says")
	}
	return binaries.old, binaries.tree
}

// A said is what a process wrote.
type said struct {
	mu    sync.Mutex // guards bytes
	bytes bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.String()
}

// A server is one process after the other on the same data, of one version or the other.
type server struct {
	t      *testing.T
	name   string
	listen string
	peer   string
	data   string
	args   []string
	binary string // that it runs, or ran last

	process *process.Process
	said    *said // by it
}

func newServer(t *testing.T, name string) *server {
	t.Helper()
	s := &server{t: t, name: name, listen: process.Reserve(t), peer: process.Reserve(t), data: filepath.Join(t.TempDir(), name)}
	t.Cleanup(func() {
		if s.runs() {
			s.end(syscall.SIGKILL)
		}
		if t.Failed() && s.said != nil {
			t.Logf("%s said last:\n%s", s.name, s.said)
		}
	})
	return s
}

// start begins a process of a version.
func (s *server) start(binary string) {
	s.t.Helper()
	s.binary = binary
	args := append([]string{"serve", "--listen", s.listen, "--data", s.data, "--insecure",
		"--segment-size", "1MiB", "--snapshot-every", "1MiB", "--min-free", "0", "--drain-timeout", "2s"}, s.args...)
	s.said = &said{}
	var err error
	if s.process, err = process.Start(s.said, binary, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) runs() bool { return s.process.Runs() }

// end ends the process by a signal, and returns its exit code.
func (s *server) end(signal syscall.Signal) int { return s.process.End(signal) }

func (s *server) url() string { return "http://" + s.listen }

// caller asks this server alone.
func (s *server) caller() *v1.Caller { return callerOf(s.t, s) }

func callerOf(t *testing.T, servers ...*server) *v1.Caller {
	t.Helper()
	c, err := v1.NewCaller(v1.CallerConfig{Servers: urls(servers), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

func urls(servers []*server) (all []string) {
	for _, s := range servers {
		all = append(all, s.url())
	}
	return all
}

// until waits for something that must come to be.
func until(t *testing.T, what string, is func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) // a server answers at once
	}
}

// ready waits until the server answers.
func (s *server) ready() {
	s.t.Helper()
	caller := s.caller()
	until(s.t, s.name+" gets ready", func() error {
		if !s.runs() {
			s.t.Fatalf("%s ended with %d:\n%s", s.name, s.process.Code(), s.said)
		}
		_, err := caller.Ready(context.Background())
		return err
	})
}

// endsWith waits until the process has ended by itself with an error that has a text.
func (s *server) endsWith(text string) {
	s.t.Helper()
	select {
	case <-s.process.Ended():
	case <-time.After(patience):
		s.t.Fatalf("%s still runs, and should have ended with %q:\n%s", s.name, text, s.said)
	}
	if code := s.process.Code(); code == 0 || !strings.Contains(s.said.String(), text) {
		s.t.Errorf("%s ended with %d, and should have said %q:\n%s", s.name, code, text, s.said)
	}
}

// says waits until the process has said a text.
func (s *server) says(text string) {
	s.t.Helper()
	until(s.t, s.name+" says "+text, func() error {
		if strings.Contains(s.said.String(), text) {
			return nil
		}
		return errors.New("it says:\n" + s.said.String())
	})
}

// run runs a command of a version, and returns what it printed and whether it ended with 0.
func run(t *testing.T, binary string, args ...string) (out string, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = []string{}
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), err == nil
}

// A content is what check finds in a data directory.
type content struct {
	Namespaces, Resources, Leases, Waiters, Sessions, Entries int
	Snapshot, Index                                           uint64
	Checksum                                                  string
}

// check replays the data of a stopped server.
func check(t *testing.T, binary, data string) (c content) {
	t.Helper()
	out, ok := run(t, binary, "check", "--data", data, "-o", "json")
	if !ok {
		t.Fatalf("%s refuses %s: %s", filepath.Base(binary), data, out)
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// sameReplay wants both versions to come to the same state by the data of a stopped server.
func sameReplay(t *testing.T, old, tree, data string) content {
	t.Helper()
	byOld, byTree := check(t, old, data), check(t, tree, data)
	if byOld != byTree {
		t.Errorf("VIOLATION: %s holds two states:\n%+v by the release\n%+v by this tree", data, byOld, byTree)
	}
	if byOld.Index == 0 || len(byOld.Checksum) != 8 {
		t.Errorf("%s was not summed up: %+v", data, byOld)
	}
	return byOld
}

// copyData copies the data of a stopped server.
func copyData(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// format is that of a data directory.
func format(t *testing.T, data string) int {
	t.Helper()
	var is struct{ Format int }
	b, err := os.ReadFile(filepath.Join(data, "format"))
	if err == nil {
		err = json.Unmarshal(b, &is)
	}
	if err != nil {
		t.Fatal(err)
	}
	return is.Format
}

// level is that of the cluster, as a server has it.
func (s *server) level() (uint64, error) {
	known, err := s.caller().Cluster(context.Background())
	if err == nil && known.Level == 0 {
		err = fmt.Errorf("%s says no level", s.name)
	}
	return known.Level, err
}

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/test/process"
)

const patience = 60 * time.Second // after which something hangs

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "leasehold")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leasehold")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "leasehold does not build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// A server is Leasehold in a process of its own.
type server struct {
	t    testing.TB
	dir  string
	url  string
	args []string
	*process.Process
}

// startServer starts a server, and waits until it is ready.
func startServer(t testing.TB, flags ...string) *server {
	t.Helper()
	address := process.Reserve(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + address}
	s.args = append([]string{"serve", "--listen", address, "--data", filepath.Join(s.dir, "data"), "--log-level", "warn"}, flags...)
	s.start()
	s.awaitReady()
	return s
}

// startCluster starts three servers, and waits until all are ready.
func startCluster(t testing.TB) []*server {
	t.Helper()
	return startClusterWith(t, func() []string { return nil })
}

// startClusterWith is startCluster with more flags for each server.
func startClusterWith(t testing.TB, flags func() []string) (all []*server) {
	t.Helper()
	var members []string
	peers := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		peers[name] = process.Reserve(t)
		members = append(members, name+"="+peers[name])
	}
	for _, name := range []string{"one", "two", "three"} {
		address := process.Reserve(t)
		s := &server{t: t, dir: t.TempDir(), url: "http://" + address}
		s.args = []string{"serve", "--listen", address, "--data", filepath.Join(s.dir, "data"), "--log-level", "warn",
			"--name", name, "--peer-listen", peers[name], "--initial-cluster", strings.Join(members, ","), "--insecure"}
		s.args = append(s.args, flags()...)
		s.start()
		all = append(all, s)
	}
	for _, s := range all {
		s.awaitReady()
	}
	return all
}

func (s *server) start() {
	s.t.Helper()
	log := &logged{}
	var err error
	if s.Process, err = process.Start(log, binary, s.args...); err != nil {
		s.t.Fatal(err)
	}
	p := s.Process
	s.t.Cleanup(func() {
		p.End(syscall.SIGKILL)
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", s.url, log)
		}
	})
}

// logged is what a server says.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (s *server) awaitReady() {
	s.t.Helper()
	await(s.t, s.url+" is ready", func() bool {
		response, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// await waits until something is so.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// config is how clients reach the server.
func (s *server) config() *rest.Config { return &rest.Config{Host: s.url, QPS: 1000, Burst: 1000} }

// leases is a typed client, which speaks protobuf.
func leases(t testing.TB, c *rest.Config, namespace string) coordination.LeaseInterface {
	t.Helper()
	client, err := coordination.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client.Leases(namespace)
}

// untyped is a dynamic client, which speaks JSON.
func untyped(t testing.TB, c *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// native asks the API of Leasehold.
func (s *server) native(method, path, body string, into any) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatal(err)
		}
	}
}

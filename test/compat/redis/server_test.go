//go:build linux

package redis

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/test/process"
)

// A server is where clients connect to.
type server struct {
	host, port string
	data       string // its directory
	token      string // empty: everybody may do everything
	ca         string // a file; empty: no TLS
}

func (s *server) address() string { return net.JoinHostPort(s.host, s.port) }

// environ is what the programs of other languages get.
func (s *server) environ() []string {
	return append(os.Environ(), "HOST="+s.host, "PORT="+s.port, "TOKEN="+s.token, "CA="+s.ca, "REDISCLI_AUTH="+s.token)
}

func (s *server) tls(t *testing.T) *tls.Config {
	t.Helper()
	if s.ca == "" {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(read(t, s.ca))) {
		t.Fatal("the authority has no certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// binary is the server, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "compat-redis-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "leasehold")
	build := exec.Command("go", "build", "-o", binary, "github.com/leasehold/leasehold/cmd/leasehold")
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "leasehold does not build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// each runs a test on a plain server, and on one with TLS and access.
func each(t *testing.T, test func(t *testing.T, s *server)) {
	t.Run("plain", func(t *testing.T) {
		s := newServer(t)
		s.start(t)
		test(t, s)
	})
	t.Run("TLS and a token", func(t *testing.T) {
		s, certs := newServer(t), filepath.Join(t.TempDir(), "certs")
		for _, args := range [][]string{{"cert", "ca"}, {"cert", "server", "n1", s.host}} {
			if out, err := exec.Command(binary, append(args, "--dir", certs)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		s.ca = filepath.Join(certs, "ca.crt")
		s.start(t, "--access", "--tls-cert", filepath.Join(certs, "n1.crt"), "--tls-key", filepath.Join(certs, "n1.key"))
		s.token = read(t, filepath.Join(s.data, "admin-token"))
		test(t, s)
	})
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{data: t.TempDir()}
	s.host, s.port, _ = net.SplitHostPort(process.Reserve(t))
	return s
}

// start returns when the server answers.
func (s *server) start(t *testing.T, flags ...string) {
	t.Helper()
	var said bytes.Buffer
	p, err := process.Start(&said, binary, append([]string{"serve", "--listen", s.address(), "--data", s.data}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if code := p.End(syscall.SIGTERM); code != 0 {
			t.Errorf("the server ended with %d:\n%s", code, said.String())
		}
	})
	caller, err := v1.NewCaller(v1.CallerConfig{Server: s.address(), TLS: s.tls(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.CloseIdle()
	for {
		if _, err := caller.Ready(t.Context()); err == nil {
			return
		}
		if !p.Runs() {
			t.Fatalf("the server ended with %d:\n%s", p.Code(), said.String())
		}
		time.Sleep(5 * time.Millisecond) // a server that starts answers at once that it does
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

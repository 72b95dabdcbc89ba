//go:build linux

// Package examples tests the programs below it: each as it is, on each store that it imports.
package examples

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/leasetest"
)

var programs = []string{"job", "leader", "session", "reservation", "cache"}

// stores returns the address of an empty store of each kind. A process has its own memory: what another
// one holds there is not seen.
func stores(t *testing.T) map[string]string {
	t.Helper()
	server := leasetest.Start(t)
	inside, _ := url.Parse("http://leasetest")
	front := httptest.NewServer(&httputil.ReverseProxy{
		Transport: server.HTTP().Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(inside) },
	})
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)
	return map[string]string{
		"memory": "memory:", "leasehold": front.URL,
		"redis": "redis://" + peer.StartRedis(t, peer.RedisConfig{}).Address + "?init=true&max-ttl=4h",
	}
}

func TestProgramsAreShort(t *testing.T) {
	for _, name := range programs {
		text, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines >= 40 {
			t.Errorf("%s has %d lines: fewer than 40 are promised", name, lines)
		}
	}
}

// A bench runs the programs on one store.
type bench struct {
	*testing.T
	bin, store string
}

func (b *bench) command(name string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	b.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, name))
	cmd.Env = append(os.Environ(), "LEASEHOLD_SERVER="+b.store, "LEASEHOLD_NAMESPACE=", "LEASEHOLD_HOLDER=")
	return cmd
}

// run runs a program to its end, and fails the test unless it prints what is wanted and exits with a code.
func (b *bench) run(name, input string, code int, wants ...string) {
	b.Helper()
	cmd := b.command(name)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		b.Errorf("%s: %v, want exit code %d; it printed %s", name, err, code, out)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			b.Errorf("%s printed %q: it lacks %q", name, out, want)
		}
	}
}

// lead starts a leader, waits until it leads, and returns what interrupts it.
func (b *bench) lead() (interrupt func()) {
	b.Helper()
	cmd := b.command("leader")
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = write.Close()
	line := make([]byte, 1000)
	n, err := read.Read(line)
	if !strings.Contains(string(line[:n]), " leads, with token ") {
		b.Errorf("it printed %q: %v", line[:n], err)
	}
	return func() {
		b.Helper()
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			b.Errorf("leader: %v", err)
		}
		_ = read.Close()
	}
}

func TestProgramsRunOnEachStore(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+"/", "./job", "./leader", "./session", "./reservation", "./cache")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, address := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b := &bench{t, bin, address}
			for range 2 {
				b.run("job", "", 0, "writing the report, with token ")
				b.run("session", "hello\nbye\n", 0, "ann: hello\nann: bye\n")
				b.lead()() // the second leads at once: the first has resigned
			}
			b.run("cache", "", 0, "41 <nil>\n42 <nil>\n43 <nil>\n")
			b.run("reservation", "", 0, "the room is yours until ")
			if name != "memory" {
				b.run("reservation", "", 1, "rooms/blue is held by ")
			}
		})
	}
}

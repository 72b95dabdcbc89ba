//go:build linux

package redis

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// find returns a program, or leaves the test out.
func find(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("left out: %s is not installed here (make deps)", name)
	}
	return path
}

// run runs a program against a server, and returns what it wrote.
func run(t *testing.T, s *server, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // after which something hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func TestRedisPy(t *testing.T) {
	python := "/usr/bin/python3" // Debian's, which has Debian's packages
	if err := exec.Command(python, "-c", "import redis").Run(); err != nil {
		t.Skip("left out: redis-py is not installed here (make deps)")
	}
	each(t, func(t *testing.T, s *server) {
		if out := run(t, s, python, filepath.Join("testdata", "story.py")); out != "told\n" {
			t.Errorf("it says %s", out)
		}
	})
}

func TestIORedis(t *testing.T) {
	node := find(t, "node")
	library, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "ioredis", "node_modules", "ioredis"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Skip("left out: ioredis is not installed here (make deps)")
	}
	t.Setenv("IOREDIS", library)
	each(t, func(t *testing.T, s *server) {
		if out := run(t, s, node, filepath.Join("testdata", "story.cjs")); out != "told\n" {
			t.Errorf("it says %s", out)
		}
	})
}

// What docs/doors/resp.md shows by hand, and a watch.
func TestRedisCLI(t *testing.T) {
	program := find(t, "redis-cli")
	each(t, func(t *testing.T, s *server) {
		args := []string{"-h", s.host, "-p", s.port, "-3", "--no-raw", "--show-pushes", "yes"}
		if s.ca != "" {
			args = append(args, "--tls", "--cacert", s.ca)
		}
		out := typeIn(t, s, `LH.WATCH PREFIX reports/ TAG t
LH.ACQUIRE reports/nightly HOLDER ci TTL 30s LABEL team=a ID demo1
LH.ACQUIRE reports/nightly HOLDER other
LH.RENEW demo1 NOTE "half done"
LH.RELEASE demo1
`, `"lh.watch"`, program, args...)
		for _, want := range []string{
			`"id" => "demo1"`, `"token" => (integer) 1`, `"kind" => "acquired"`, `"note" => "half done"`, "\nOK\n",
			"(error) HELD reports/nightly is held by ci; ends in 30s unless renewed",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %s in:\n%s", want, out)
			}
		}
	})
}

// typeIn gives redis-cli commands, and then pings until it has shown something: pushes come with replies.
func typeIn(t *testing.T, s *server, commands, until, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // after which something hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.environ()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close()
		_ = cmd.Wait()
	}()
	_, _ = io.WriteString(input, commands+"PING\n")
	var all strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if lines.Text() != "PONG" {
			continue
		}
		if strings.Contains(all.String(), until) {
			return all.String()
		}
		_, _ = io.WriteString(input, "PING\n")
	}
	t.Errorf("it did not show %s:\n%s", until, all.String())
	return all.String()
}

package mcp

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// said is what a process wrote.
type said struct {
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// installed returns a directory in which the SDK is, or leaves the test out.
func installed(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("left out: there is no %s here", program)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "story.mjs"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("left out: npm cannot install the SDK here: %v %s", err, out)
	}
	return dir
}

// TestTypeScriptSDK tells the story of two agents by a client that we did not write.
func TestTypeScriptSDK(t *testing.T) {
	dir := installed(t)
	leasehold := process.BuildTree(t, dir)
	var log said
	server, err := process.Start(&log, leasehold, "serve", "--listen", "127.0.0.1:0", "--mcp-break",
		"--data", filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.End(syscall.SIGTERM)
	address := regexp.MustCompile(`serves on (http://\S+?),`)
	for end := time.Now().Add(time.Minute); !address.MatchString(log.String()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || !server.Runs() {
			t.Fatalf("the server does not start: %s", log.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	story := exec.CommandContext(ctx, "node", "story.mjs", address.FindStringSubmatch(log.String())[1], leasehold)
	story.Dir = dir
	out, err := story.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "http ok") || !strings.Contains(string(out), "stdio ok") {
		t.Errorf("%v\n%s", err, out)
	}
}

//go:build linux

// Package console tests the web console in a browser, against a real server, and that what is committed is what its
// source gives. A test of a page is a file NAME.test.mjs beside this one; each has a server of its own.
package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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

// found returns a program, or leaves the test out.
func found(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("left out: %s is not installed here (make deps)", names[0])
	return ""
}

func TestInABrowser(t *testing.T) {
	node, chromium := found(t, "node"), found(t, "chromium", "chromium-browser", "google-chrome")
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		t.Skip("left out: playwright-core is not installed here (make deps)")
	}
	files, err := filepath.Glob("*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	binary := process.BuildTree(t, t.TempDir())
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".test.mjs"), func(t *testing.T) {
			address := serve(t, binary)
			seed(t, address)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "--test", "--test-reporter=spec", file)
			cmd.Env = append(os.Environ(), "LEASEHOLD_URL="+address, "CHROMIUM="+chromium, "LEASEHOLD_BINARY="+binary)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // browsers have children of their own
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			cmd.WaitDelay = 5 * time.Second
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			} else if testing.Verbose() {
				t.Logf("%s", out)
			}
		})
	}
}

// A log is what a server says, which a test reads meanwhile.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var consoleAt = regexp.MustCompile(`(?m)^the console is at (\S+)/$`)

// serve starts a server, and returns its address as it says it.
func serve(t *testing.T, binary string) string {
	t.Helper()
	said := &log{}
	server, err := process.Start(said, binary, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(),
		"--min-free", "1MiB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(syscall.SIGTERM) })
	for range 600 {
		if m := consoleAt.FindStringSubmatch(said.String()); m != nil {
			return m[1]
		}
		if !server.Runs() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the server does not start:\n%s", said)
	return ""
}

// seed puts in what every test finds: holders of several kinds, a queue, a pool, an alarm and records.
func seed(t *testing.T, address string) {
	t.Helper()
	for _, s := range []struct{ method, path, body string }{
		{"PUT", "/v1/definitions/gpu/pool", `{"units":["gpu0","gpu1","gpu2","gpu3"]}`},
		{"PUT", "/v1/definitions/slow/", `{"expected":"1s"}`},
		{"POST", "/v1/acquire", `{"resource":"reports/nightly","holder":"ci/build-7","id":"nightly","ttl":"20m",
			"reason":"the report of Monday","labels":{"host":"runner-3","operation":"report"}}`},
		{"POST", "/v1/acquire", `{"resource":"db/migrate","holder":"ann@laptop","id":"migrate","ttl":"1h"}`},
		{"POST", "/v1/sessions", `{"id":"waiters","ttl":"1h"}`},
		{"POST", "/v1/acquire", `{"resource":"gpu/pool","holder":"train/llm-1","id":"gpu-1","slots":1,"ttl":"30m"}`},
		{"POST", "/v1/acquire", `{"resource":"gpu/pool","holder":"train/llm-2","id":"gpu-2","slots":2,"ttl":"30m"}`},
		{"POST", "/v1/acquire", `{"resource":"slow/export","holder":"cron/export","id":"slow","ttl":"1h"}`},
		{"POST", "/v1/acquire", `{"resource":"gone/job","holder":"ci/build-6","id":"gone","ttl":"1h"}`},
		{"POST", "/v1/break", `{"id":"gone","period":"0s","reason":"the machine is gone"}`},
		{"POST", "/v1/acquire", `{"resource":"done/job","holder":"ci/build-5","id":"done","ttl":"1h"}`},
		{"POST", "/v1/release", `{"id":"done"}`},
		{"PUT", "/v1/records/config/site", `{"replicas":2}`},
		{"PUT", "/v1/records/config/site", `{"replicas":3}`},
	} {
		if status, text := ask(t, address, s.method, s.path, s.body); status/100 != 2 {
			t.Fatalf("%s %s: %d %s", s.method, s.path, status, text)
		}
	}
	for i := range 3 { // the queue of db/migrate: the answer comes when they have it
		body := fmt.Sprintf(`{"resource":"db/migrate","holder":"ci/deploy-%d","id":"wait-%[1]d","session":"waiters","wait":"1h"}`, i)
		go http.Post(address+"/v1/acquire", "application/json", strings.NewReader(body))
	}
}

func ask(t *testing.T, address, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(body, "{") && !strings.HasPrefix(path, "/v1/records/") {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// What the server embeds is what the source gives, byte for byte, also in another directory.
func TestWhatIsCommittedIsWhatTheSourceGives(t *testing.T) {
	npm := found(t, "npm")
	const source = "../../web"
	dir := t.TempDir()
	err := filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(source, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || rel == "dist"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, rel), text, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel", "error"}, {"run", "build"}} {
		cmd := exec.Command(npm, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && args[0] == "ci" && unreachable.Match(out):
			t.Skipf("left out: the registry of npm cannot be reached")
		case err != nil:
			t.Fatalf("npm %s: %v\n%s", args[0], err, out)
		}
	}
	built, committed := read(t, filepath.Join(dir, "dist")), read(t, filepath.Join(source, "dist"))
	for name, text := range built {
		if was, ok := committed[name]; !ok || was != text {
			t.Errorf("web/dist/%s is not what the source gives: run make web, and commit what it changes", name)
		}
	}
	for name := range committed {
		if _, ok := built[name]; !ok {
			t.Errorf("web/dist/%s is not made by the source: run make web, and commit what it changes", name)
		}
	}
}

// unreachable is how npm says that it has no network.
var unreachable = regexp.MustCompile(`EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH`)

// read returns all files of a directory.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

//go:build linux

package python

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// oldest is the oldest Python that the client works with.
const oldest = "(3, 9)"

// pythons are Debian's Python, and the one that is first in the path.
func pythons(t *testing.T) (found []string) {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err != nil || exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < "+oldest+")").Run() != nil {
			continue
		}
		real, err := exec.Command(path, "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
		if err != nil {
			continue
		}
		if path = strings.TrimSpace(string(real)); len(found) == 0 || found[0] != path {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Skip("left out: there is no Python 3.9 or newer here")
	}
	return found
}

// client is where the client is.
var client = filepath.Join("..", "..", "..", "clients", "python")

func TestPythonClient(t *testing.T) {
	all := pythons(t)
	files, err := filepath.Glob(filepath.Join(client, "tests", "test_*.py"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	binary := process.BuildTree(t, t.TempDir())
	for _, python := range all {
		for _, file := range files {
			module := strings.TrimSuffix(filepath.Base(file), ".py")
			t.Run(python+"/"+module, func(t *testing.T) {
				t.Parallel() // they wait most of the time
				runTests(t, python, module, binary)
			})
		}
	}
}

// runTests runs the tests of a module, which start servers themselves.
func runTests(t *testing.T, python, module, binary string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // after which something hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-X", "dev", "-m", "unittest", "-v", module)
	cmd.Dir = filepath.Join(client, "tests")
	cmd.Env = append(os.Environ(), "LEASEHOLD_TEST_BINARY="+binary, "PYTHONDONTWRITEBYTECODE=1")
	// A group of its own, so that nothing it started outlives it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`Ran [1-9]\d* tests?`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, skipped := range regexp.MustCompile(`(?m)^.*skipped.*$`).FindAll(out, -1) {
		t.Logf("left out: %s", skipped)
	}
}

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

func TestPythonClient(t *testing.T) {
	all := pythons(t)
	binary := process.BuildTree(t, t.TempDir())
	for _, python := range all {
		t.Run(python, func(t *testing.T) { runTests(t, python, binary) })
	}
}

// runTests runs the tests of the client, which start servers themselves.
func runTests(t *testing.T, python, binary string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // after which something hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-X", "dev", "-m", "unittest", "discover", "-v", "-s", "tests")
	cmd.Dir = filepath.Join("..", "..", "..", "clients", "python")
	cmd.Env = append(os.Environ(), "LEASEHOLD_TEST_BINARY="+binary, "PYTHONDONTWRITEBYTECODE=1")
	// A group of its own, so that nothing it started outlives it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	ran := regexp.MustCompile(`Ran (\d+) tests`).FindSubmatch(out)
	if ran == nil || len(ran[1]) < 2 {
		t.Errorf("it ran hardly any test:\n%s", out)
	}
	for _, skipped := range regexp.MustCompile(`(?m)^.*skipped.*$`).FindAll(out, -1) {
		t.Logf("left out: %s", skipped)
	}
}

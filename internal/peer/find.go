//go:build linux

package peer

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// find returns the path of a program, or skips the test. How to get the program is said by get.
func find(t testing.TB, program, get string) string {
	t.Helper()
	if path := lookup(program); path != "" {
		return path
	}
	t.Skipf("left out: %s is not installed here (%s)", program, get)
	return ""
}

// lookup returns "" if a program is not installed.
func lookup(program string) string {
	if path := built(program); path != "" {
		return path
	}
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/" + program, "/usr/sbin/" + program} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// built returns the path of something that make put into bin/peers, or "".
func built(name string) string {
	if dir := os.Getenv("LEASEHOLD_PEERS"); dir != "" {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return above(filepath.Join("bin", "peers", name))
}

// above looks for a file in the working directory and its parents. A test runs in the directory of
// its package, so the root of the repository is one of them.
func above(name string) string {
	dir, err := os.Getwd()
	for err == nil {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// unprivileged returns the user that a server runs as which refuses to run as root, or nil if the
// test itself is not run by root.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("left out: a server that refuses to run as root needs the user nobody")
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// newDir makes a directory that a user can read and write. It is not below t.TempDir, whose
// parent only its owner can enter.
func newDir(t testing.TB, as *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own(t, as, dir)
	return dir
}

// own gives a file to a user.
func own(t testing.TB, as *syscall.Credential, path string) {
	t.Helper()
	if as == nil {
		return
	}
	if err := os.Chown(path, int(as.Uid), int(as.Gid)); err != nil {
		t.Fatal(err)
	}
}

package upkeep

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server whose disk is full when access is to begin says so and changes nothing; the next start does it.
func TestAFullDiskLocksNobodyOut(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("left out: a small disk needs root and tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	full := filepath.Join(dir, "full")
	if err := os.WriteFile(full, bytes.Repeat([]byte{1}, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
	for range 2 {
		_, err := New(Config{Dir: dir, Server: "n1", Begin: true}).Start(t.Context(), e)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the admin token cannot be written, so nothing "+
			"was changed: ") || !strings.HasSuffix(err.Error(), "start the server again") {
			t.Fatalf("it says: %v", err)
		}
		if policyOf(t, e) != nil || len(files(t, dir)) != 1 {
			t.Fatalf("access is on, or files were left: %v", files(t, dir))
		}
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	started(t, e, Config{Dir: dir, Server: "n1", Begin: true})
	if !hasSecret(t, dir, policyOf(t, e)) {
		t.Error("there is no admin token")
	}
}

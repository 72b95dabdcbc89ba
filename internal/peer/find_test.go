//go:build linux

package peer

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	if path := lookup("sh"); path == "" {
		t.Error("sh is not found in PATH")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sh"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEASEHOLD_PEERS", dir)
	if path := lookup("sh"); path != filepath.Join(dir, "sh") {
		t.Errorf("with LEASEHOLD_PEERS, sh is %q", path)
	}
	if path := lookup("no such server"); path != "" {
		t.Errorf("a program that does not exist is %q", path)
	}
}

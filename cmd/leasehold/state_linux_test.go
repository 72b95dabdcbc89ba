package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Fault: a rollback happens without a question, or although the state has changed since it was
// shown.
func TestRollbackAsks(t *testing.T) {
	s := newStage(t)
	push := func(serial string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "s.tfstate")
		if err := os.WriteFile(file, []byte(`{"version":4,"lineage":"L","serial":`+serial+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		s.plays("state", "push", "s", file).ends(0)
	}
	push("1")
	push("2")
	screen, p := s.openTerminal("leasehold", "state", "rollback", "s", "1", "--reason", "wrong account")
	screen.shows(`This will replace the state s:\s+current +serial 2, written .* by .*\s+back to +serial 1`)
	screen.types("no\n")
	p.ends(64)
	screen, p = s.openTerminal("leasehold", "state", "rollback", "s", "1", "--reason", "wrong account")
	screen.shows(`Type "yes" to roll it back: `)
	push("3")
	screen.types("yes\n")
	p.ends(76)
	screen.shows("s was changed by somebody else after it was shown: nothing was done")
	screen, p = s.openTerminal("leasehold", "state", "rollback", "s", "1", "--reason", "wrong account")
	screen.shows(`Type "yes" to roll it back: `)
	s.plays("delete", "terraform/s").ends(0)
	screen.types("yes\n")
	p.ends(76)
	screen.shows("s was changed by somebody else after it was shown: nothing was done")
	screen, p = s.openTerminal("leasehold", "state", "rollback", "s", "1", "--reason", "wrong account")
	screen.shows(`current +deleted`)
	screen.types("yes\n")
	p.ends(0)
	screen.shows("rolled back s to serial 1; it now has serial 4")
}

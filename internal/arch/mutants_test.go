package arch

import (
	"os"
	"path/filepath"
	"testing"
)

// Mistakes on purpose are patches, which a build beside the tree has. The package that switches one on is not in the tree, so
// that nothing which is built from it could make one.
func TestNoMistakeIsInTheTree(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "internal/sim/mutant")); err == nil {
		t.Error("internal/sim/mutant is in the tree")
	}
}

//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// A large value that a record names is there after a power failure, and each sync of its files is needed for that.
func TestNoValueIsLostWithTheUnsyncedBytes(t *testing.T) {
	below := string(filepath.Separator) + valuesDir
	for name, c := range map[string]struct {
		ignore func(path string, dir bool) bool
		lost   bool
	}{
		"all":             {nil, false},
		"without files":   {func(path string, dir bool) bool { return !dir && strings.Contains(path, below) }, true},
		"without folders": {func(path string, dir bool) bool { return dir && strings.Contains(path, below) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			mount, fsys := mountSynced(t, c.ignore)
			e := startAt(t, filepath.Join(mount, "data"), Config{})
			defer closed(t, e)
			var lost error
			for i, value := range []string{"the first", "another", "one more"} {
				large := putValue(t, e, []byte(value))
				mustDo(t, e, &core.PutRecord{Namespace: "default", Path: value, Large: large})
				left := filepath.Join(t.TempDir(), "image")
				image(t, fsys, left)
				report, err := storage.Check(filepath.Join(left, "data"))
				if err == nil && report.Counts.Larges != i+1 {
					err = fmt.Errorf("%d values are there", report.Counts.Larges)
				}
				lost = errors.Join(lost, err)
			}
			if (lost != nil) != c.lost {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}

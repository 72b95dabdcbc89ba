package mutants

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A change is what a build has instead of files of the tree, by their paths in it.
type change map[string][]string

// A tree is the source that patches are applied to.
type tree struct {
	root  string
	files map[string]map[string][]string // by folder and path; lines
}

// sources returns the files of a package without its tests.
func (t *tree) sources(dir string) (map[string][]string, error) {
	if files, ok := t.files[dir]; ok {
		return files, nil
	}
	names, err := filepath.Glob(filepath.Join(t.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	files := map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[dir+"/"+filepath.Base(name)] = strings.Split(string(text), "\n")
	}
	t.files[dir] = files
	return files, nil
}

// apply adds a mutant to what was changed before, or changes nothing.
func (t *tree) apply(m *Mutant, before change) (change, error) {
	after := maps.Clone(before)
	for i, h := range m.hunks {
		files, err := t.sources(h.dir)
		if err != nil {
			return nil, err
		}
		if len(h.old) == 0 {
			after[fmt.Sprintf("%s/mutant_%s_%d.go", h.dir, strings.ToLower(m.Name), i)] = newFile(files, h.new)
			continue
		}
		if err := h.apply(files, after); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// newFile is a file that a package has besides. It is in the same package as the others.
func newFile(files map[string][]string, lines []string) []string {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if i := slices.IndexFunc(files[name], isClause); i >= 0 {
			return append([]string{strings.TrimSuffix(files[name][i], withMutant)}, lines...)
		}
	}
	return lines
}

func isClause(line string) bool { return strings.HasPrefix(line, "package ") }

// withMutant lets a file use the switches, without another line.
const withMutant = `; import "github.com/leasehold/leasehold/internal/sim/mutant"`

// apply replaces the lines of a hunk in the file that has them, changed before or not.
func (h *hunk) apply(files map[string][]string, changed change) error {
	var in string
	var at, found int
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines := files[name]
		if c, ok := changed[name]; ok {
			lines = c
		}
		for i := range lines {
			if h.isAt(lines[i:]) {
				in, at = name, i
				found++
			}
		}
	}
	if found != 1 {
		line := strings.TrimSpace(h.old[0])
		return fmt.Errorf("%d places in %s have the line %q and what goes with it", found, h.dir, line)
	}
	lines := files[in]
	if c, ok := changed[in]; ok {
		lines = c
	}
	lines = slices.Concat(lines[:at], h.new, lines[at+len(h.old):])
	if i := slices.IndexFunc(lines, isClause); strings.Contains(strings.Join(h.new, "\n"), "mutant.On(") &&
		!strings.HasSuffix(lines[i], withMutant) {
		lines[i] += withMutant
	}
	changed[in] = lines
	return nil
}

// isAt reports whether lines begin with those of a hunk, however far in they stand.
func (h *hunk) isAt(lines []string) bool {
	if len(lines) < len(h.old) {
		return false
	}
	for i, old := range h.old {
		if strings.TrimSpace(lines[i]) != strings.TrimSpace(old) {
			return false
		}
	}
	return true
}

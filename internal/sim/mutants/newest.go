package mutants

import (
	"cmp"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// remembered is how many commits back a package counts as one that changed lately.
const remembered = "50"

// NewestFirst brings the mutants to the front whose packages changed last, by git. Without git they stay as they are.
func NewestFirst(root string, list []*Mutant) {
	since := lastChanges(root)
	age := func(m *Mutant) int {
		youngest := len(since)
		for _, h := range m.hunks {
			if at := slices.Index(since, h.dir); at >= 0 {
				youngest = min(youngest, at)
			}
		}
		return youngest
	}
	slices.SortStableFunc(list, func(a, b *Mutant) int { return cmp.Compare(age(a), age(b)) })
}

// lastChanges returns folders whose files changed, the last one first.
func lastChanges(root string) (dirs []string) {
	for _, asked := range [][]string{
		{"diff", "--name-only", "HEAD"}, {"log", "-" + remembered, "--format=", "--name-only"},
	} {
		c := exec.Command("git", asked...)
		c.Dir = root
		names, err := c.Output()
		if err != nil {
			return nil
		}
		for _, name := range strings.Fields(string(names)) {
			if dir := path.Dir(name); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

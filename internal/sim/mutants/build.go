package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Build has several mutants, of which a process makes one.
type Build struct {
	Mutants []*Mutant
	changed change
	root    string
	dir     string // where its programs are
}

// Divide puts each mutant into the first build that it fits into: those that change the same lines do not go
// together. It also returns those that fit into none, since the tree is not what they were written for.
func Divide(root string, list []*Mutant) (builds []*Build, unfit map[string]error) {
	t, unfit := &tree{root, map[string]map[string][]string{}}, map[string]error{}
	for _, m := range list {
		if _, err := t.apply(m, change{}); err != nil {
			unfit[m.Name] = err
			continue
		}
		i := 0
		for ; i < len(builds); i++ {
			if c, err := t.apply(m, builds[i].changed); err == nil {
				builds[i].changed = c
				break
			}
		}
		if i == len(builds) {
			c, _ := t.apply(m, change{})
			builds = append(builds, &Build{changed: c, root: root})
		}
		builds[i].Mutants = append(builds[i].Mutants, m)
	}
	return builds, unfit
}

// source is the package that says which mistake a process makes.
const source = `// Package mutant says which mistake is made.
package mutant

import "os"

var name = os.Getenv("LEASEHOLD_MUTANT")

// On reports whether a mistake is made.
func On(mistake string) bool { return name == mistake }
`

// Make builds the tests that find its mutants, in a folder.
func (b *Build) Make(dir string) error {
	b.dir = dir
	replace := map[string]string{}
	files := change{"internal/sim/mutant/mutant.go": strings.Split(source, "\n")}
	for name, lines := range b.changed {
		files[name] = lines
	}
	for name, lines := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			return err
		}
		replace[filepath.Join(b.root, filepath.FromSlash(name))] = at
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.overlay(), overlay, 0o644); err != nil {
		return err
	}
	return b.compile()
}

// compile makes the program of each finder once.
func (b *Build) compile() error {
	made := map[string]bool{}
	for _, m := range b.Mutants {
		for _, by := range m.By {
			if made[by.Package] {
				continue
			}
			made[by.Package] = true
			c := exec.Command("go", "test", "-c", "-vet", "off", "-overlay", b.overlay(), "-o", b.program(by),
				"./"+by.Package)
			c.Dir = b.root
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("the tests of %s with mutants cannot be built: %w\n%s", by.Package, err, out)
			}
		}
	}
	return nil
}

func (b *Build) overlay() string { return filepath.Join(b.dir, "overlay.json") }

func (b *Build) program(f Finder) string {
	return filepath.Join(b.dir, strings.ReplaceAll(f.Package, "/", "-")+".test")
}

// ErrNotFound says that a test passed although a mistake was made.
var ErrNotFound = errors.New("not found")

// limit is how long a finder may take.
const limit = 3 * time.Minute

// Find lets a finder look for a mutant, and returns what it says. With an empty name no mistake is made.
func (b *Build) Find(name string, f Finder) (string, error) {
	test := "^" + strings.ReplaceAll(f.Test, "/", "$/^") + "$"
	c := exec.Command(b.program(f), "-test.run", test, "-test.short", "-test.failfast",
		"-test.timeout", limit.String())
	c.Dir, c.Env = filepath.Join(b.root, f.Package), append(os.Environ(), "LEASEHOLD_MUTANT="+name)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return "", fmt.Errorf("%s has no test %s", f.Package, f.Test)
	case err == nil:
		return "", ErrNotFound
	case !errors.As(err, &exit):
		return "", err
	case bytes.Contains(out, []byte("panic: test timed out")):
		return "", fmt.Errorf("not found in %v", limit)
	}
	return said(string(out)), nil
}

var (
	failed = regexp.MustCompile(`(?m)^ +\S+_test\.go:\d+: (.*)$`)
	panics = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

// said is the first thing that a test complained of.
func said(out string) string {
	for _, line := range []*regexp.Regexp{panics, failed} {
		if found := line.FindStringSubmatch(out); found != nil {
			return found[1]
		}
	}
	return out
}

package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every promise names the test that would break, or says that there is none yet.
func TestEveryPromiseNamesItsTest(t *testing.T) {
	exists := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test() {
			continue
		}
		for name := range f.Scope.Objects {
			exists[name] = true
		}
	}
	for name, atLeast := range map[string]int{"docs/guarantees.md": 12, "docs/agents.md": 10} {
		named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)`").FindAllStringSubmatch(text(t, name), -1)
		if len(named) < atLeast {
			t.Fatalf("%s names only %d tests", name, len(named))
		}
		for _, match := range named {
			if !exists[match[1]] {
				t.Errorf("%s names %s, which does not exist", name, match[1])
			}
		}
	}
	page := text(t, "docs/guarantees.md")
	for i := 1; i <= 12; i++ {
		row := regexp.MustCompile(`(?m)^\| G` + string(rune('0'+i/10)) + `?` + string(rune('0'+i%10)) + ` \|.*$`)
		if i < 10 {
			row = regexp.MustCompile(`(?m)^\| G` + string(rune('0'+i)) + ` \|.*$`)
		}
		if line := row.FindString(page); !strings.Contains(line, "`Test") && !strings.Contains(line, "not yet") {
			t.Errorf("docs/guarantees.md: G%d names no test and does not say \"not yet\": %q", i, line)
		}
	}
}

// The walk in docs/architecture.md and every other link goes to something that is
// there.
func TestDocumentsPointAtThingsThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	path := regexp.MustCompile("`((?:internal|cmd|api|docs|test)/[\\w./-]+)`")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// What is built or installed, in bin, is not ours to keep true.
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || name == filepath.Join(root, "bin")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
		for _, m := range path.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

package arch

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modules returns the directories that have a go.mod; the root is ".".
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || name == filepath.Join(root, "bin")) {
			return filepath.SkipDir
		}
		if d.Name() == "go.mod" {
			rel, err := filepath.Rel(root, filepath.Dir(name))
			dirs = append(dirs, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return dirs
}

// What is not in go.work is neither built nor tested by make.
func TestEveryModuleIsInTheWorkspace(t *testing.T) {
	var used []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\.\S*)$`).FindAllStringSubmatch(text(t, "go.work"), -1) {
		used = append(used, path.Clean(m[1]))
	}
	slices.Sort(used)
	if found := modules(t); !slices.Equal(used, found) {
		t.Errorf("go.work uses %v, and the tree has %v", used, found)
	}
}

// The modules of this tree require each other by version, so that the command can be installed: go
// install refuses a module that replaces another. In the workspace that version need not be released,
// because each module excludes it in its own go.mod; otherwise go would ask a proxy for it.
func TestModulesRequireEachOtherByVersion(t *testing.T) {
	if regexp.MustCompile(`(?m)^\s*replace\b`).MatchString(text(t, "go.work")) {
		t.Error("go.work replaces a module")
	}
	versions := map[string]bool{}
	for _, dir := range modules(t) {
		file := text(t, path.Join(dir, "go.mod"))
		if want := "module " + path.Join(module, dir) + "\n"; !strings.HasPrefix(file, want) {
			t.Errorf("%s/go.mod does not begin with %q", dir, want)
		}
		if regexp.MustCompile(`(?m)^\s*replace\b`).MatchString(file) {
			t.Errorf("%s/go.mod replaces a module", dir)
		}
		required := regexp.MustCompile(`(?m)^(?:require )?\s*` + module + `(/\S+)? (v\S+)`)
		for _, m := range required.FindAllStringSubmatch(file, -1) {
			versions[m[2]] = true
			exclude := "\nexclude " + module + m[1] + " " + m[2] + "\n"
			if other := text(t, path.Join(".", m[1], "go.mod")); !strings.Contains(other, exclude) {
				t.Errorf("%s/go.mod requires %s, and %s/go.mod does not say %q", dir, strings.TrimSpace(m[0]), path.Join(".", m[1]), exclude)
			}
		}
	}
	if len(versions) != 1 {
		t.Errorf("modules are required in the versions %v: it has to be one", versions)
	}
}

// A program that imports the client must not get a store with it. So each store is a module of its
// own, and so is the command, which links them all.
func TestRootRequiresNoOtherModule(t *testing.T) {
	if strings.Contains(text(t, "go.mod"), module+"/") {
		t.Error("the root module requires another module of this tree")
	}
	if !slices.Contains(modules(t), "cmd/leasehold") {
		t.Error("cmd/leasehold is not a module of its own")
	}
}

package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The two targets split all packages between them: one takes what matches a pattern, the
// other what does not. Each test is therefore run by one of them.
func TestEachPackageIsTestedByOneTarget(t *testing.T) {
	recipes := recipes(t)
	for target, want := range map[string]string{
		"test": "$(LIST) | grep -Ev $(PROCESSES)", "test-all": "$(LIST) | grep -E $(PROCESSES)",
	} {
		if !strings.Contains(recipes[target], want) {
			t.Errorf("make %s does not choose its packages by %s", target, want)
		}
	}
	if !strings.Contains(text(t, "Makefile"), "\nPACKAGES ?= work\n") {
		t.Error("the packages that make tests are not those of all modules in go.work")
	}
	if ci := text(t, ".ci/run"); !strings.Contains(ci, "make deps test test-all\n") {
		t.Error(".ci/run does not run both test and test-all")
	}
}

// recipes are what the targets of the Makefile run.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	recipes := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*\n((?:\t.*\n)*)`).FindAllStringSubmatch(text(t, "Makefile"), -1) {
		recipes[m[1]] = m[2]
	}
	return recipes
}

// The Makefile finds tests that make test shortens by the line "func Test" before the question, and has test-all run them
// whole. What a helper leaves out would be run by nobody.
func TestWhatIsShortenedIsRunWhole(t *testing.T) {
	recipes, found := recipes(t), 0
	if n := strings.Count(recipes["test"], " -short "); n != 2 || strings.Contains(recipes["test-all"], " -short ") ||
		strings.Count(recipes["test-all"], `-run "$$long"`) != 2 {
		t.Error("make test does not shorten its tests, or make test-all does not run them whole")
	}
	for _, f := range sources(t) {
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && typeName(s) == "testing.Short" {
					found++
					if fn, ok := d.(*ast.FuncDecl); !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
						t.Errorf("%s: only a test itself may ask whether it should be short", f.set.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	if found < 5 {
		t.Errorf("only %d tests are shortened", found)
	}
}

// What is tested without the race detector starts no goroutines and holds no locks, so that there can be no races in it.
func TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutines(t *testing.T) {
	m := regexp.MustCompile(`(?m)^PLAIN := '(/internal/.*?)\|/test/`).FindStringSubmatch(text(t, "Makefile"))
	if m == nil {
		t.Fatal("the Makefile has no list PLAIN")
	}
	plain, found := regexp.MustCompile(strings.ReplaceAll(m[1], "$$", "$")), map[string]bool{}
	for _, f := range sources(t) {
		if f.test() || !plain.MatchString("/"+f.dir) {
			continue
		}
		found[f.dir] = true
		if slices.Contains(f.imports(), "sync") || slices.Contains(f.imports(), "sync/atomic") {
			t.Errorf("%s/%s imports sync or sync/atomic: it needs the race detector", f.dir, f.name)
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if starts(n) {
				t.Errorf("%s: it needs the race detector", f.set.Position(n.Pos()))
			}
			return true
		})
	}
	if len(found) < 10 {
		t.Errorf("only %d packages are tested without the race detector", len(found))
	}
}

// starts reports whether something starts a goroutine.
func starts(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc")
	}
	return false
}

// What decides has to be tested by make test, so its tests must not start processes.
func TestInternalPackagesStartNoProcesses(t *testing.T) {
	mayStart := []string{"internal/child", "internal/faultfs"}
	for _, f := range sources(t) {
		if !f.test() || !strings.HasPrefix(f.dir, "internal/") || slices.Contains(mayStart, f.dir) {
			continue
		}
		if slices.Contains(f.imports(), "os/exec") {
			t.Errorf("%s/%s imports os/exec: make test would leave its package out; move the test below test/", f.dir, f.name)
		}
	}
}

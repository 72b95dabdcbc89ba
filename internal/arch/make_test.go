package arch

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The two targets split all packages between them: one takes what matches a pattern, the
// other what does not. Each test is therefore run by one of them.
func TestEachPackageIsTestedByOneTarget(t *testing.T) {
	recipes := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*\n((?:\t.*\n)*)`).FindAllStringSubmatch(text(t, "Makefile"), -1) {
		recipes[m[1]] = m[2]
	}
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

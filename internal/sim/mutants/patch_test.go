package mutants

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const patched = `Two is three.
found by internal/x TestX

package a
 func two() int {
-return 2
+	if mutant.On("Three") {
+		return 3
+	}
+	return 2

+func four() int { return 4 }
`

// A hunk is found in whatever file of its package has its lines, and in one place alone; a second mutant finds what the
// first one left.
func TestPatchesAreApplied(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		at := filepath.Join(root, "a", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one.go", "package a\n\nfunc one() int { return 1 }\n")
	write("two.go", "package a\n\nfunc two() int {\n\treturn 2\n}\n")
	write("two_test.go", "package a\n\nfunc two() int {\n\treturn 2\n}\n")
	parsed := func(name string) *Mutant {
		m, err := parse(name, strings.ReplaceAll(patched, "Three", name))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	three, other := parsed("Three"), parsed("Other")
	if three.Breaks != "Two is three." || !slices.Equal(three.By, []Finder{{"internal/x", "TestX"}}) {
		t.Errorf("it is %+v", three)
	}
	gone, err := parse("Gone", strings.ReplaceAll(patched, "return 2", "return 5"))
	if err != nil {
		t.Fatal(err)
	}
	builds, unfit := Divide(root, []*Mutant{three, other, gone})
	if len(builds) != 2 || len(unfit) != 1 || unfit["Gone"] == nil {
		t.Fatalf("%d builds, and these do not fit: %v", len(builds), unfit)
	}
	want := "package a" + withMutant + "\n\nfunc two() int {\n\tif mutant.On(\"Three\") {\n\t\treturn 3\n\t}\n\treturn 2\n}\n"
	if got := strings.Join(builds[0].changed["a/two.go"], "\n"); got != want {
		t.Errorf("a/two.go is\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(builds[0].changed["a/mutant_three_1.go"], "\n"); got != "package a\nfunc four() int { return 4 }" {
		t.Errorf("the new file is\n%s", got)
	}
}

func TestPatchesThatAreWrong(t *testing.T) {
	for _, text := range []string{"It breaks nothing.\n", "It is nowhere.\nfound by a TestA\n+x\n", "found\nby nobody\n",
		"Nobody finds it.\n\npackage a\n+x\n", "By what?\nfound by a\npackage a\n+x\n"} {
		if _, err := parse("Wrong", text); err == nil {
			t.Errorf("this is a patch: %q", text)
		}
	}
}

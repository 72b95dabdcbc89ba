package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a reader can take in at once. Tests are free: a story may be long. What a package is for
// decides how large it is, and not a number of lines.
const (
	maxFile     = 600 // lines: a subject that is one stays in one file
	maxFunction = 65  // lines
	maxColumns  = 120 // with tabs of four
)

// minComments is how much of all lines are comments, in percent. It should become 16.
const minComments = 10

func TestNothingIsTooLarge(t *testing.T) {
	is := map[string]string{}
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		lines := f.lines(t)
		if len(lines) > maxFile {
			is["file "+f.path()] = fmt.Sprintf("has %d lines, and may have %d", len(lines), maxFile)
		}
		for name, n := range f.functions() {
			if n > maxFunction {
				is["func "+f.path()+" "+name] = fmt.Sprintf("has %d lines, and may have %d", n, maxFunction)
			}
		}
		if slices.ContainsFunc(lines, tooWide) {
			is["lines "+f.dir] = fmt.Sprintf("has lines above %d columns, such as in %s", maxColumns, f.name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(is)) {
		t.Errorf("%s %s", what, is[what])
	}
}

func TestCodeIsExplained(t *testing.T) {
	lines, comments := 0, 0
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		for _, line := range f.lines(t) {
			lines++
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				comments++
			}
		}
	}
	if share := 100 * comments / lines; share < minComments {
		t.Errorf("%d %% of the lines are comments, and %d %% should be", share, minComments)
	}
}

func tooWide(line string) bool {
	return utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > maxColumns
}

func (f file) path() string { return f.dir + "/" + f.name }

func (f file) lines(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, f.dir, f.name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// functions returns how many lines each function has. A switch that only names what is done in each case counts for
// nothing: it is a table.
func (f file) functions() map[string]int {
	all := map[string]int{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			n := f.linesOf(d)
			for _, s := range d.Body.List {
				if isTable(s) {
					n -= f.linesOf(s)
				}
			}
			all[receiver(d)+d.Name.Name] = n
		}
	}
	return all
}

func (f file) linesOf(n ast.Node) int {
	return f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1
}

// isTable reports whether a statement is a switch whose cases have two plain statements at most.
func isTable(s ast.Stmt) bool {
	var cases *ast.BlockStmt
	switch s := s.(type) {
	case *ast.SwitchStmt:
		cases = s.Body
	case *ast.TypeSwitchStmt:
		cases = s.Body
	default:
		return false
	}
	return !slices.ContainsFunc(cases.List, func(s ast.Stmt) bool {
		body := s.(*ast.CaseClause).Body
		return len(body) > 2 || slices.ContainsFunc(body, hasBlock)
	})
}

func hasBlock(s ast.Stmt) (has bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		_, is := n.(*ast.BlockStmt)
		has = has || is
		return !has
	})
	return has
}

// receiver returns the type of a method and a dot.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

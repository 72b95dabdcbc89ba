package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Tests have programs that know a level after the newest. No server may be one of them.
func TestOnlyTestsKnowALevelThatNoReleaseHas(t *testing.T) {
	uses := map[string][]string{ // what takes a level that is known, and who may use it
		"wire.ReadSnapshotUpTo": {"internal/engine/storage/statefile.go"},
		"storage.OpenDirUpTo":   {"internal/engine/cluster/start.go"},
	}
	for _, f := range sources(t) {
		if f.test() || f.dir == "internal/sim" || strings.HasPrefix(f.dir, "internal/sim/") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			at := func() token.Position { return f.set.Position(n.Pos()) }
			switch n := n.(type) {
			case *ast.SelectorExpr:
				may, is := uses[typeName(n)]
				if is && !slices.ContainsFunc(may, func(file string) bool { return strings.HasSuffix(at().Filename, file) }) {
					t.Errorf("%s: %s is for programs of tests", at(), typeName(n))
				}
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					call, calls := kv.Value.(*ast.CallExpr)
					known := calls && typeName(call.Fun) == "c.known"
					switch typeName(n.Type) + "." + typeName(kv.Key) {
					case "Config.levels", "cluster.Config.levels":
						t.Errorf("%s: only tests say which levels a server knows", at())
					case "replica.Config.Levels":
						if !known {
							t.Errorf("%s: a node knows the levels of its program", at())
						}
					}
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					if s, ok := to.(*ast.SelectorExpr); ok && s.Sel.Name == "levels" {
						t.Errorf("%s: only tests say which levels a server knows", at())
					}
				}
			case *ast.BinaryExpr:
				if n.Op == token.ADD && strings.HasSuffix(typeName(n.X), "NewestLevel") {
					t.Errorf("%s: no release has that level", at())
				}
			}
			return true
		})
	}
}

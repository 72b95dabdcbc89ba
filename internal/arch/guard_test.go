package arch

import (
	"go/ast"
	"strings"
	"testing"
)

// Doors get no engine but the guarded one: what is behind it they could not keep to themselves.
func TestDoorsReachNoBareEngine(t *testing.T) {
	guarded := false
	for _, f := range sources(t) {
		if f.test() || f.dir != "internal/door" && !strings.HasPrefix(f.dir, "internal/door/") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if fields, ok := n.Type.(*ast.StructType); ok && f.dir == "internal/door" && n.Name.Name == "Backend" {
					guarded = true
					keepsNoEngine(t, f, fields)
				}
			case *ast.TypeAssertExpr:
				if n.Type != nil && strings.HasPrefix(typeName(n.Type), "engine.") {
					t.Errorf("%s: a door asks what an engine is: the guard says so", f.set.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Feed" {
					t.Errorf("%s: a door follows events other than by engine.Watch", f.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if !guarded {
		t.Error("there is no door.Backend")
	}
}

// keepsNoEngine checks that a backend has the guard, and parts that it got from it.
func keepsNoEngine(t *testing.T, f file, fields *ast.StructType) {
	t.Helper()
	has := map[string]bool{}
	for _, field := range fields.Fields.List {
		has[typeName(field.Type)] = true
	}
	if has["engine.Engine"] || !has["*access.Guard"] {
		t.Errorf("%s/%s: a Backend has %v: it may keep the guard, and no engine", f.dir, f.name, has)
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

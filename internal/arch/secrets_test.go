package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// secretWords are in the names of what a stranger must not be able to guess byte by byte, by how long a comparison takes.
var secretWords = []string{"secret", "password", "signature", "nonce", "mac", "hash"}

// publicHashes are the files that compare hashes none of which a request shows: of tokens, both as the rules have them,
// or of something else.
var publicHashes = map[string]string{
	"internal/access/credential/still.go":     "two versions of the rules",
	"internal/access/document/diff.go":        "two versions of the rules",
	"internal/access/upkeep/declare.go":       "files with rules",
	"internal/door/native/rights/token.go":    "what an admin puts, and what is there",
	"internal/door/native/outlook/outlook.go": "the states of servers",
}

// Secrets are compared in constant time: by crypto/subtle or hmac.Equal.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	looked, public := 0, map[string]bool{}
	for _, f := range sources(t) {
		if f.test() || !seesSecrets(f.dir) {
			continue
		}
		looked++
		for _, found := range comparedSecrets(f.File) {
			path := f.dir + "/" + f.name
			if strings.Contains(found.what, "hash") && publicHashes[path] != "" {
				public[path] = true
				continue
			}
			t.Errorf("%s: %s is compared byte by byte: use subtle.ConstantTimeCompare or hmac.Equal",
				f.set.Position(found.pos), found.what)
		}
	}
	if looked < 50 || len(public) != len(publicHashes) {
		t.Errorf("%d files were looked at, and public hashes found in %v", looked, public)
	}
}

// seesSecrets reports whether credentials come to a package. A provider for tests has no secrets.
func seesSecrets(dir string) bool {
	for _, root := range []string{"internal/access", "internal/door", "internal/azureaccount"} {
		if dir == root || strings.HasPrefix(dir, root+"/") {
			return !strings.HasSuffix(dir, "test")
		}
	}
	return false
}

type comparison struct {
	pos  token.Pos
	what string
}

// comparedSecrets returns the comparisons of secrets that take longer the more of them is equal.
func comparedSecrets(f *ast.File) (found []comparison) {
	compares := func(pos token.Pos, operands ...ast.Expr) {
		for _, o := range operands {
			if constant(o) {
				return
			}
		}
		for _, o := range operands {
			if word := secretIn(o); word != "" {
				found = append(found, comparison{pos, word})
				return
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compares(n.Pos(), n.X, n.Y)
			}
		case *ast.CallExpr:
			equals := []string{"bytes.Equal", "bytes.Compare", "slices.Equal", "strings.Compare", "strings.EqualFold"}
			if slices.Contains(equals, typeName(n.Fun)) {
				compares(n.Pos(), n.Args...)
			}
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				for _, value := range clause.(*ast.CaseClause).List {
					if n.Tag != nil {
						compares(value.Pos(), n.Tag, value)
					}
				}
			}
		}
		return true
	})
	return found
}

// constant reports whether an operand is known to everybody: "", nil, or a length.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.CallExpr:
		return typeName(e.Fun) == "len"
	case *ast.BasicLit:
		return true
	}
	return false
}

// secretIn returns the word by which an operand is a secret; empty: it is none. What a call returns, such as a length, is
// something else, unless it is a conversion.
func secretIn(e ast.Expr) string {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.IndexExpr:
		return secretIn(e.X)
	case *ast.SliceExpr:
		return secretIn(e.X)
	case *ast.CallExpr:
		if fun := typeName(e.Fun); len(e.Args) == 1 && (fun == "string" || fun == "") {
			return secretIn(e.Args[0])
		}
	}
	for _, word := range secretWords {
		if strings.Contains(strings.ToLower(name), word) {
			return word
		}
	}
	return ""
}

// The rule finds what it is for.
func TestAPlainComparisonOfSecretsIsFound(t *testing.T) {
	for code, want := range map[string]int{
		"a.Secret == b":                              1,
		"password != string(given)":                  1,
		"string(mac) == given":                       1,
		"bytes.Equal(given, signature)":              1,
		"bytes.Equal([]byte(tokenHash), sum[:])":     1,
		"strings.EqualFold(nonce, other)":            1,
		`a.Secret == ""`:                             0,
		"secrets == nil":                             0,
		"len(secret) == size":                        0,
		"hmac.Equal(signature, given)":               0,
		"subtle.ConstantTimeCompare(secret, x) == 1": 0,
		"func() { switch secret { case other: } }":   1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", fmt.Sprintf("package p\nvar x = %s\n", code), 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := comparedSecrets(f); len(found) != want {
			t.Errorf("%s: found %v", code, found)
		}
	}
}

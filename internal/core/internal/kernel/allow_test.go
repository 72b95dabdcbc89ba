package kernel

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// TestEveryCommandHasARule: a kind of command that nobody thought of when the rules were written would otherwise be
// noticed by the first who is denied it.
func TestEveryCommandHasARule(t *testing.T) {
	ruled := map[string]bool{}
	for _, f := range parse(t, "allow.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, kind := range c.List {
					if star, ok := kind.(*ast.StarExpr); ok {
						ruled[star.X.(*ast.Ident).Name] = true
					}
				}
			}
			return true
		})
	}
	commands := 0
	for _, f := range parse(t, filepath.Join("..", "..", "command", "*.go")) {
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "subject" {
				continue
			}
			commands++
			if name := method.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !ruled[name] {
				t.Errorf("who may %s? Say so in allow.go", name)
			}
		}
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
}

func parse(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

type ruleless struct{ Command }

func (ruleless) Validate() error { return nil }

func guarded(t *testing.T) *State {
	t.Helper()
	s := newState()
	put := access.Items{
		Tokens:   []*access.Token{{ID: "t1", Hash: string(make([]byte, 32)), Principal: "root"}},
		Bindings: []*access.Binding{{Name: "root", Role: "admin", Principal: "root", Namespace: "*"}},
	}
	if a := apply(t, s, 0, &ChangeAccess{Put: put}); a.Err != nil {
		t.Fatal(a.Err)
	}
	return s
}

// TestWhatHasNoRuleIsDenied: to the admin, too.
func TestWhatHasNoRuleIsDenied(t *testing.T) {
	s := guarded(t)
	turn := s.begin()
	turn.asker = &access.Asker{Principal: "root", Token: "t1"}
	turn.permit = s.policy.Permit(turn.asker)
	if failure := turn.allowCommand(ruleless{}); failure == nil || failure.Code != leasehold.Denied {
		t.Errorf("it is allowed: %v", failure)
	}
}

// BenchmarkAllow is the check alone: of a lease by its id, and of a resource that is asked for.
func BenchmarkAllow(b *testing.B) {
	s := newState()
	put := access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: string(make([]byte, 32)), Principal: "root"}},
		Bindings: []*access.Binding{
			{Name: "root", Role: "admin", Principal: "root", Namespace: "*"},
			{Name: "team", Role: "member", Group: "team", Namespace: "default", Prefix: "reports/"},
		},
	}
	for i := range 1000 {
		put.Bindings = append(put.Bindings,
			&access.Binding{Name: fmt.Sprint("b", i), Role: "member", Group: fmt.Sprint("g", i%100), Namespace: "default", Prefix: fmt.Sprintf("p%d/", i)})
	}
	apply := func(a *access.Asker, c Command) {
		result, err := s.Apply(s.now+1, 0, []Command{c}, From{Askers: []*access.Asker{a}})
		if err != nil || result.Answers[0].Err != nil {
			b.Fatal(err, result.Answers)
		}
	}
	apply(nil, &ChangeAccess{Put: put})
	ann := &access.Asker{Principal: "azure:ann", Groups: []string{"team", "g1", "g2"}}
	acquire := &Acquire{Namespace: "default", Resource: "reports/2026/nightly", ID: "id", Holder: "ann"}
	apply(ann, acquire)
	acquire = &Acquire{Namespace: "default", Resource: "reports/2026/daily", ID: "id2", Holder: "ann"}
	for name, c := range map[string]Command{"renew": &Renew{Namespace: "default", ID: "id"}, "acquire": acquire} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			turn := s.begin()
			turn.asker = ann
			for b.Loop() {
				if _, not := turn.allow(c); not {
					b.Fatal("it is denied")
				}
			}
		})
	}
}

package access

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever is bound, the parts have every path at which something is allowed, in order and each once.
func TestPartsHaveWhatIsAllowed(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		return strings.Repeat("a", dice.IntN(2)) + []string{"", "a", "b", "a/", "a/b", "a/b/", "ab", "b/"}[dice.IntN(8)]
	}
	for range 2000 {
		var bindings []*Binding
		for i := range dice.IntN(4) {
			bindings = append(bindings, &Binding{Name: fmt.Sprint(i), Role: []string{"viewer", "own"}[dice.IntN(2)], Principal: "ann",
				Namespace: []string{"default", "*", "other"}[dice.IntN(3)], Prefix: word()})
		}
		p := (*Policy)(nil).With(Keys{}, Items{Bindings: bindings, Roles: []*Role{{Name: "own", Own: Of(List)}}}).proving("ann")
		permit, prefix := p.Compile(&Asker{Principal: "ann"}), word()
		parts := permit.Parts(List, "default", prefix)
		if !slices.IsSortedFunc(parts, func(a, b Part) int { return strings.Compare(a.Path, b.Path) }) {
			t.Fatalf("%v are not in order", parts)
		}
		for _, path := range []string{"a", "b", "aa", "ab", "a/a", "a/b", "a/b/c", "ab/c", "aab", "b/a", "a0", "a.b", "c"} {
			in := 0
			for _, part := range parts {
				if path >= part.Path && (part.End() == "" || path < part.End()) {
					in++
				}
			}
			may := strings.HasPrefix(path, prefix) && permit.May(List, "default", path, &Owner{Principal: "ann"})
			if in > 1 || may && in == 0 || !may && in == 1 {
				t.Fatalf("%s is in %d of %v below %q; allowed: %v", path, in, parts, prefix, may)
			}
		}
	}
	if got := (*Permit)(nil).Parts(List, "default", "x"); len(got) != 1 || got[0] != (Part{Path: "x"}) {
		t.Errorf("without a policy: %v", got)
	}
}

func TestForeignRootsAreThoseOfForeignPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"terraform/prod": true, "terraform": false, "terraformer/x": false, "azure/account": true, "azure.block/x": true,
		"azure.json": false, "azurex/y": false, "tflineage/prod": true, "a/terraform/x": false,
	} {
		if IsForeign(path) != want {
			t.Errorf("%s is foreign: %v", path, !want)
		}
		below := slices.ContainsFunc(ForeignRoots(), func(r ForeignRoot) bool { return strings.HasPrefix(path, r.Path) })
		if want && !below {
			t.Errorf("%s is below no root", path)
		}
	}
}

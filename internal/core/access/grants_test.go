package access

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever is bound to whom, merged grants decide as separate ones do, and both as the bindings say one by one.
// Which ones a server has depends on who asked it before.
func TestSharedGrantsDecideAsTheBindingsSay(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[dice.IntN(len(of))] }
	paths := []string{"a", "a/b", "a/b/c", "ab", "b", ".runs/a/b", "a/"}
	for range 3000 {
		var put Items
		put.Roles = []*Role{{Name: "own", Own: Of(Renew, Change), Any: Of(Share)}, {Name: "some", Any: Of(Acquire, Change)}}
		for i := range dice.IntN(12) {
			b := &Binding{Name: fmt.Sprint(dice.IntN(100), i), Role: pick("member", "viewer", "own", "some", "operator"),
				Namespace: pick("n", "n", "*", "o"), Prefix: pick("", "a", "a/", "a/b", "b", "a/b/"), Holders: pick("", "", "h", "h/i")}
			if who := pick("ann", "g0", "g1", "g2", "g3"); who == "ann" {
				b.Principal = who
			} else {
				b.Group = who
			}
			put.Bindings = append(put.Bindings, b)
		}
		p := (*Policy)(nil).With(Keys{}, put).proving("ann")
		ann := &Asker{Principal: "ann", Groups: []string{"g2", "g0", "g3", "g1"}}
		merged := p.Compile(ann)
		p.rules = new(rules)
		p.rules.places.Store(maxPlaces)
		separate := p.Compile(ann)
		v, path, holder := Verb(dice.IntN(int(verbs))), paths[dice.IntN(len(paths))], pick("", "h", "h/i/j", "hi")
		owner := []*Owner{nil, {Principal: "ann"}, {Principal: "bob", Group: "g0"}, {Principal: "bob"}}[dice.IntN(4)]
		for name, permit := range map[string]*Permit{"merged": merged, "separate": separate} {
			got := fmt.Sprint(permit.MayHold(v, "n", path, holder, owner), *permit.OwnerOf(v, "n", path, holder))
			if want := plainly(p, ann, v, path, holder, owner); got != want {
				t.Fatalf("%s: %v of %s as %q, which %v owns: %s, and the bindings say %s", name, v, path, holder, owner, got, want)
			}
		}
		one, two := []any{merged.HoldersFor(v, "n", path), merged.Parts(v, "n", "a"), merged.MayAll(v, "n"), merged.MayAnywhere(v)},
			[]any{separate.HoldersFor(v, "n", path), separate.Parts(v, "n", "a"), separate.MayAll(v, "n"), separate.MayAnywhere(v)}
		if fmt.Sprint(one) != fmt.Sprint(two) {
			t.Fatalf("merged: %v, separate: %v", one, two)
		}
	}
}

// plainly looks at each binding by itself. Of those that let something be taken the one decides that is to this
// namespace and to the shortest prefix.
func plainly(p *Policy, a *Asker, v Verb, path, holder string, owner *Owner) string {
	may, self := false, &Permit{Asker: a, groups: slices.DeleteFunc(slices.Clone(a.Groups), func(g string) bool { return !p.NamesGroup(g) })}
	type take struct {
		all, length int
		of          Owner
	}
	takes := []take{{2, 0, Owner{Principal: a.Principal}}}
	p.each(a, func(b *Binding, role *Role) {
		r, ok := allows(b, role, v, "n", path)
		named := b.Holders == "" || !Verbs(holding).Has(v) || Covers(b.Holders, holder)
		if !ok || !named {
			return
		}
		may = may || !r.Own || self.Owns(owner)
		if !r.Own && Verbs(taken).Has(v) {
			takes = append(takes, take{strings.Count(b.Namespace, "*"), reach(b, path), Owner{Principal: a.Principal, Group: b.Group}})
		}
	})
	slices.SortStableFunc(takes, func(a, b take) int { return (a.all-b.all)*1000 + a.length - b.length })
	return fmt.Sprint(may, takes[0].of)
}

// reach is how long the prefix is by which a binding is found.
func reach(b *Binding, path string) int {
	prefix := b.Prefix
	if !Covers(prefix, path) {
		prefix = ".runs/" + prefix
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") && len(path) > len(prefix) {
		return len(prefix) + 1
	}
	return len(prefix)
}

// BenchmarkCompile is what the first asker of a subject costs, and the next one.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct{ bindings, groups int }{{1000, 1}, {MaxBindings - 2, 1}, {1000, MaxGroups}} {
		p, list := crowd(c.bindings, c.groups, 2)
		b.Run(fmt.Sprintf("first/%d-to-%d", c.bindings, c.groups), func(b *testing.B) {
			for b.Loop() {
				p.rules = new(rules)
				p.Compile(list[0])
			}
		})
		b.Run(fmt.Sprintf("next/%d-to-%d", c.bindings, c.groups), func(b *testing.B) {
			for b.Loop() {
				p.Compile(list[0])
			}
		})
	}
}

// crowd returns a policy that binds to some groups, and askers that are in all of them and have a binding of their own.
func crowd(bindings, groups, askers int) (*Policy, []*Asker) {
	var put Items
	var names []string
	for g := range groups {
		names = append(names, fmt.Sprintf("group-%d", g))
	}
	for i := range bindings {
		put.Bindings = append(put.Bindings, &Binding{Name: fmt.Sprintf("b%d", i), Role: "member", Group: names[i%groups],
			Namespace: "default", Prefix: fmt.Sprintf("team-%d/jobs/", i)})
	}
	var list []*Asker
	for i := range askers {
		who := fmt.Sprintf("azure:user-%d", i)
		list = append(list, &Asker{Principal: who, Groups: names})
		put.Bindings = append(put.Bindings, &Binding{Name: who, Role: "viewer", Principal: who, Namespace: "default", Prefix: "home/" + who})
	}
	return (*Policy)(nil).With(Keys{}, put), list
}

package sim

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/internal/core"
)

// Areas: names that are patterns of paths, and exclude each other where they overlap. Whether they do is judged here by
// looking at each path that there could be, of a few names and a few deep.

const area = "repo/a:"

// patterns are what is asked for. Each pair that overlaps does so at one of the paths below.
var patterns = []string{
	"", "src", "src/*", "src/**", "src/*.go", "src/**/a.go", "src/m", "src/m/*.md", "src/*/a*", "src/m/b.md",
	"doc", "doc/**/b*", "**/*.go", "*/m", "doc/m/src",
}

// segments are what paths are made of, and deepest is how many they have at most.
var segments = []string{"src", "doc", "m", "a.go", "b.go", "b.md", "ab.md"}

const deepest = 4

// meanings returns which paths each pattern means.
func meanings() map[string][]bool {
	all := map[string][]bool{}
	each(nil, func(path []string) {
		for _, p := range patterns {
			all[area+p] = append(all[area+p], means(p, path))
		}
	})
	return all
}

// each calls do with all paths that begin with one.
func each(path []string, do func([]string)) {
	do(path)
	if len(path) == deepest {
		return
	}
	for _, s := range segments {
		each(append(path[:len(path):len(path)], s), do)
	}
}

// means reports whether a pattern means a path: one without a wildcard means all below it, too.
func means(pattern string, path []string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "/")
	if !strings.Contains(pattern, "*") && len(path) > len(parts) {
		path = path[:len(parts)]
	}
	return matches(parts, path)
}

func matches(parts, path []string) bool {
	switch {
	case len(parts) == 0:
		return len(path) == 0
	case parts[0] == "**" && matches(parts[1:], path):
		return true
	case len(path) == 0:
		return false
	case parts[0] == "**":
		return matches(parts, path[1:])
	}
	return fitsText(parts[0], path[0]) && matches(parts[1:], path[1:])
}

// fitsText reports whether a text is what a pattern with stars means.
func fitsText(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return fitsText(pattern[1:], text) || text != "" && fitsText(pattern, text[1:])
	}
	return text != "" && pattern[0] == text[0] && fitsText(pattern[1:], text[1:])
}

// overlaps has all pairs of names that mean one path.
var overlaps = func() map[[2]string]bool {
	all := map[[2]string]bool{}
	meant := meanings()
	for a, x := range meant {
		for b, y := range meant {
			for i := range x {
				if x[i] && y[i] {
					all[[2]string{a, b}] = true
					break
				}
			}
		}
	}
	return all
}()

func inArea(name string) bool { return strings.HasPrefix(name, area) }

// meet reports whether two spots are one, or exclude each other by their names.
func meet(a, b spot) bool {
	return a == b || a.space == b.space && inArea(a.name) && inArea(b.name) && overlaps[[2]string{a.name, b.name}]
}

// inArea lets a grip ask for a pattern, or for two that do not overlap.
func (g *grip) inArea() {
	w := g.client.world
	g.at.name = area + patterns[w.random.IntN(len(patterns))]
	if w.chance(30) {
		g.slots = 1
	}
	other := spot{g.at.space, area + patterns[w.random.IntN(len(patterns))]}
	if w.chance(20) && !meet(g.at, other) {
		g.subject, g.bound = &together{g, []core.Item{{Resource: other.name, ID: g.id + "b"}}}, true
	}
}

// inTheWay returns what keeps a name of an area from being granted: another one that overlaps it, and is held or rests;
// with surely, also one that rests until somebody has noticed that this is over.
func (t *witness) inTheWay(at spot, slots int, surely bool) string {
	if !inArea(at.name) {
		return ""
	}
	for _, p := range patterns {
		other := spot{at.space, area + p}
		if other == at || !meet(at, other) {
			continue
		}
		for _, o := range t.place(other).holders {
			if o.slots == 0 || slots == 0 {
				return fmt.Sprintf("%s, which %s has", other.name, o.id)
			}
		}
		for _, r := range t.place(other).rests {
			if (r.until > t.now || surely) && (r.slots == 0 || slots == 0) {
				return other.name + ", which rests"
			}
		}
	}
	return ""
}

// inOrder checks that somebody who is granted a name of an area passes nobody who waits for what overlaps it.
func (t *witness) inOrder(p *promise) {
	if !inArea(p.at.name) {
		return
	}
	t.world.count("grants in areas")
	if o := t.aheadInArea(p); o != nil && t.wanted(o) {
		t.world.violated("%s is granted %s, and it was the turn of %s, which waits for %s", p.id, p.at.name, o.id,
			o.at.name)
	}
}

// firstInArea reports whether nobody waits, before a waiter, for a name that overlaps its own.
func (t *witness) firstInArea(p *promise) bool { return !inArea(p.at.name) || t.aheadInArea(p) == nil }

// openInArea reports whether nothing of another name is in the way of a newcomer.
func (t *witness) openInArea(a *core.Acquire) bool {
	p := &promise{at: spot{a.Namespace, a.Resource}, priority: a.Priority}
	p.waiting.order = t.subjects.commands + 1
	return t.inTheWay(p.at, a.Slots, true) == "" && t.firstInArea(p)
}

// aheadInArea returns a waiter for another name that comes before somebody, rather one that surely is wanted; nil if
// there is none.
func (t *witness) aheadInArea(p *promise) (ahead *promise) {
	for _, name := range patterns {
		other := spot{p.at.space, area + name}
		if other == p.at || !meet(p.at, other) {
			continue
		}
		for _, o := range t.place(other).queue {
			if o.before(p) && (ahead == nil || !t.wanted(ahead)) {
				ahead = o
			}
		}
	}
	return ahead
}

// together asks for several resources at once.
type together struct {
	grip *grip
	also []core.Item
}

func (x *together) asks(a *core.Acquire) { a.Also = x.also }
func (x *together) begun()               {}
func (x *together) end() bool            { return false }

// several lets a grip ask for tools, which stand in different orders, alone or with others.
func (g *grip) several() {
	w := g.client.world
	tools := w.random.Perm(3)
	g.at.name = fmt.Sprint("tool", tools[0])
	if n := w.random.IntN(3); n > 0 {
		x := &together{grip: g}
		for i := range n {
			x.also = append(x.also, core.Item{Resource: fmt.Sprint("tool", tools[i+1]), ID: fmt.Sprint(g.id, "t", i)})
		}
		g.subject, g.bound = x, true
	}
}

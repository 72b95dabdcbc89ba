package pattern

import (
	"strings"

	"github.com/tidwall/btree"
)

// An Index finds the patterns that overlap one, among those of all areas. They are in the order of what they begin with
// before any wildcard: what overlaps has the same beginning as far as both have one.
type Index struct {
	tree  *btree.BTreeG[*Pattern]
	areas btree.Map[string, int] // how many are in each area
}

// NewIndex returns an index without patterns.
func NewIndex() Index {
	return Index{tree: btree.NewBTreeGOptions(func(a, b *Pattern) bool {
		switch {
		case a.Area != b.Area:
			return a.Area < b.Area
		case a.literal != b.literal:
			return a.literal < b.literal
		}
		return a.Name < b.Name
	}, btree.Options{NoLocks: true})}
}

// Copy returns a copy, which shares what is in it until either changes.
func (x *Index) Copy() Index { return Index{x.tree.Copy(), *x.areas.Copy()} }

// Len returns how many patterns there are.
func (x *Index) Len() int { return x.tree.Len() }

// Of returns how many patterns there are in an area.
func (x *Index) Of(area string) int {
	n, _ := x.areas.Get(area)
	return n
}

// Has reports whether a pattern is there.
func (x *Index) Has(p *Pattern) bool {
	_, has := x.tree.Get(p)
	return has
}

// Set adds a pattern.
func (x *Index) Set(p *Pattern) {
	if _, had := x.tree.Set(p); !had {
		x.areas.Set(p.Area, x.Of(p.Area)+1)
	}
}

// Delete removes a pattern.
func (x *Index) Delete(p *Pattern) {
	if _, had := x.tree.Delete(p); !had {
		return
	}
	if n := x.Of(p.Area); n > 1 {
		x.areas.Set(p.Area, n-1)
	} else {
		x.areas.Delete(p.Area)
	}
}

// Overlapping calls yield with all patterns that overlap one, the same one included, until it returns false. It returns
// how many it looked at.
func (x *Index) Overlapping(p *Pattern, yield func(*Pattern) bool) (looked int) {
	if x.Of(p.Area) == 0 {
		return 0
	}
	more := true
	visit := func(from string, in func(literal string) bool) {
		x.tree.Ascend(&Pattern{Area: p.Area, literal: from}, func(q *Pattern) bool {
			if q.Area != p.Area || !in(q.literal) {
				return false
			}
			if looked++; p.Overlaps(q) {
				more = yield(q)
			}
			return more
		})
	}
	for i := 0; i < len(p.literal) && more; i++ {
		if i == 0 || p.literal[i] == '/' {
			shorter := p.literal[:i]
			visit(shorter, func(literal string) bool { return literal == shorter })
		}
	}
	if p.literal == "" {
		visit("", func(string) bool { return true })
		return looked
	}
	if more {
		visit(p.literal, func(literal string) bool { return literal == p.literal })
	}
	if below := p.literal + "/"; more {
		visit(below, func(literal string) bool { return strings.HasPrefix(literal, below) })
	}
	return looked
}

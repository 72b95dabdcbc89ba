package pattern

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/btree"
)

// An Index finds the patterns that overlap one, among those of all areas. They are in the order of what they begin with
// before any wildcard: what overlaps has the same beginning as far as both have one. Each pattern is compared with the
// others of its area once, when it comes, and knows from then on which of them it overlaps.
type Index struct {
	tree  *btree.Tree[*member]
	areas btree.Map[string, *area]
	owner *owner // of the areas that may be changed in place: those of another are shared with a copy

	last  *Pattern // that was compared with all and is not in the index; nil: none was since the index changed
	found near     // what that overlaps
	copy  bool     // several may look at it at once
}

// A member is a pattern that is in an index, with its number in its area.
type member struct {
	*Pattern
	number int
}

// An area is the patterns of one.
type area struct {
	owner   *owner
	members int
	overlap []Bits // by the number of a pattern: the numbers of all others that it overlaps
	free    []int  // numbers that no pattern has
}

type owner struct{ _ byte }

// manySegments are, in the product of two patterns, as much to compare as a usual pair is.
const manySegments = 128

// near is what a pattern overlaps, and how much was compared to find that.
type near struct {
	overlap Bits
	looked  int
	member  *member // nil: it is not in the index
}

// NewIndex returns an index without patterns.
func NewIndex() Index {
	return Index{owner: new(owner), tree: btree.New(func(a, b *member) bool {
		switch {
		case a.Area != b.Area:
			return a.Area < b.Area
		case a.literal != b.literal:
			return a.literal < b.literal
		}
		return a.Name < b.Name
	})}
}

// Copy returns a copy, which shares what is in it until either changes.
func (x *Index) Copy() Index {
	x.owner = new(owner)
	return Index{tree: x.tree.Copy(), areas: *x.areas.Copy(), owner: new(owner), copy: true}
}

// Len returns how many patterns there are.
func (x *Index) Len() int { return x.tree.Len() }

// Of returns how many patterns there are in an area.
func (x *Index) Of(name string) int {
	if a, ok := x.areas.Get(name); ok {
		return a.members
	}
	return 0
}

// Has reports whether a pattern is there.
func (x *Index) Has(p *Pattern) bool {
	_, has := x.tree.Get(&member{Pattern: p})
	return has
}

// Set adds a pattern.
func (x *Index) Set(p *Pattern) {
	if x.Has(p) {
		return
	}
	overlap := slices.Clone(x.near(p).overlap)
	a := x.change(p.Area)
	m := &member{p, len(a.overlap)}
	if last := len(a.free) - 1; last >= 0 {
		m.number, a.free = a.free[last], a.free[:last]
		a.overlap[m.number] = overlap
	} else {
		a.overlap = append(a.overlap, overlap)
	}
	overlap.each(func(other int) { a.overlap[other].Set(m.number) })
	a.members++
	x.tree.Set(m)
}

// Delete removes a pattern.
func (x *Index) Delete(p *Pattern) {
	m, had := x.tree.Delete(&member{Pattern: p})
	if !had {
		return
	}
	a := x.change(p.Area)
	a.overlap[m.number].each(func(other int) { a.overlap[other].Clear(m.number) })
	a.overlap[m.number] = nil
	a.free = append(a.free, m.number)
	if a.members--; a.members == 0 {
		x.areas.Delete(p.Area)
	}
}

// change returns an area to be changed: a copy of it, if another index shares it.
func (x *Index) change(name string) *area {
	x.last = nil
	a, ok := x.areas.Get(name)
	if ok && a.owner == x.owner {
		return a
	}
	own := &area{owner: x.owner}
	if ok {
		own.members, own.free = a.members, slices.Clone(a.free)
		own.overlap = make([]Bits, len(a.overlap))
		for i, overlap := range a.overlap {
			own.overlap[i] = slices.Clone(overlap)
		}
	}
	x.areas.Set(name, own)
	return own
}

// near returns what a pattern overlaps. One that is not in the index is compared with all that begin alike.
func (x *Index) near(p *Pattern) near {
	if m, ok := x.tree.Get(&member{Pattern: p}); ok {
		a, _ := x.areas.Get(p.Area)
		return near{overlap: a.overlap[m.number], member: m}
	}
	if x.last != nil && x.last.Name == p.Name {
		return x.found
	}
	var found near
	x.alike(p, func(m *member) bool {
		if found.looked += 1 + len(p.segments)*len(m.segments)/manySegments; p.Overlaps(m.Pattern) {
			found.overlap.Set(m.number)
		}
		return true
	})
	if !x.copy {
		x.last, x.found = p, found
	}
	return found
}

// walkedPerLook is how many patterns are passed in the time in which two are compared.
const walkedPerLook = 16

// Overlapping calls yield with all patterns that overlap one in their order, the same one last, until it returns false.
// It returns how much was compared: little for a pattern that is in the index.
func (x *Index) Overlapping(p *Pattern, yield func(*Pattern) bool) (looked int) {
	if x.Of(p.Area) == 0 {
		return 0
	}
	near := x.near(p)
	more, left, walked := true, near.overlap.count(), 0
	if left > 0 {
		x.alike(p, func(m *member) bool {
			if walked++; near.overlap.Has(m.number) {
				left--
				more = yield(m.Pattern)
			}
			return more && left > 0
		})
	}
	if more && near.member != nil {
		yield(near.member.Pattern)
	}
	return near.looked + walked/walkedPerLook
}

// Each calls yield with all patterns of an area in their order, with the number that each has there.
func (x *Index) Each(name string, yield func(p *Pattern, number int)) {
	x.tree.Ascend(&member{Pattern: &Pattern{Area: name}}, func(m *member) bool {
		if m.Area == name {
			yield(m.Pattern, m.number)
		}
		return m.Area == name
	})
}

// Number returns the number that a pattern has in its area; false if it is not there.
func (x *Index) Number(p *Pattern) (int, bool) {
	m, ok := x.tree.Get(&member{Pattern: p})
	if !ok {
		return 0, false
	}
	return m.number, true
}

// Near returns the numbers of the patterns that one overlaps, without its own. They are not to be changed.
func (x *Index) Near(p *Pattern) Bits {
	if x.Of(p.Area) == 0 {
		return nil
	}
	return x.near(p).overlap
}

// alike calls yield with all patterns that begin as one does, as far as both have no wildcard, in their order, until it
// returns false.
func (x *Index) alike(p *Pattern, yield func(*member) bool) {
	more := true
	visit := func(from string, in func(literal string) bool) {
		x.tree.Ascend(&member{Pattern: &Pattern{Area: p.Area, literal: from}}, func(m *member) bool {
			if m.Area != p.Area || !in(m.literal) {
				return false
			}
			more = yield(m)
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
		return
	}
	if more {
		visit(p.literal, func(literal string) bool { return literal == p.literal })
	}
	if below := p.literal + "/"; more {
		visit(below, func(literal string) bool { return strings.HasPrefix(literal, below) })
	}
}

package area

import (
	"slices"

	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/pattern"
)

// A line is the first waiters of all names of an area in their order, and what is in the way of which. Each name is
// looked at once, however many overlap.
type line struct {
	*kernel.AreaQueue
	names *pattern.Index
	area  string
	heads []head // that were not looked at yet

	// The numbers that names have in the area.
	held    pattern.Bits // nobody can have what overlaps them
	shared  pattern.Bits // nobody but who shares it
	awaited pattern.Bits // by somebody who comes before all heads
}

// A head is the first waiter of a name.
type head struct {
	waiter *kernel.Claim
	name   *pattern.Pattern
	number int
	near   bool // something may be free for it
}

// lineCost is what it costs to see a name and to put its first waiter in order.
const lineCost = 2

// HandOver goes through the first waiters of all names in their order. A grant can let in only those behind it, so that
// once is enough; what does not overlap the path is looked at in a turn of its own, and only keeps its place.
func (a *areas) HandOver(q *kernel.AreaQueue, path string) {
	p := parse(path)
	if p == nil {
		return
	}
	l := newLine(q, &a.names, p)
	q.Blocks = l.blocks
	l.handOver()
}

// newLine returns the line of an area in which something may be free of a name.
func newLine(q *kernel.AreaQueue, names *pattern.Index, p *pattern.Pattern) *line {
	l := &line{AreaQueue: q, names: names, area: p.Area}
	near := names.Near(p)
	names.Each(p.Area, func(name *pattern.Pattern, number int) {
		l.see(name, number)
		if first := l.headOf(name, number, near.Has(number) || name.Name == p.Name); first.waiter != nil {
			l.heads = append(l.heads, first)
		}
	})
	l.Take(lineCost * names.Of(p.Area))
	slices.SortFunc(l.heads, compareHeads)
	return l
}

func compareHeads(a, b head) int { return kernel.CompareHeads(a.waiter, b.waiter) }

// see notes what a name is in the way of.
func (l *line) see(p *pattern.Pattern, number int) {
	l.held.Clear(number)
	l.shared.Clear(number)
	r := l.Resource(p.Name)
	if r == nil {
		return
	}
	if excludes(l.Namespace, r, true) {
		l.held.Set(number)
	} else if excludes(l.Namespace, r, false) {
		l.shared.Set(number)
	}
}

// headOf returns the first waiter of a name, and of one for which nothing is free the first that still wants it.
func (l *line) headOf(p *pattern.Pattern, number int, near bool) head {
	first := head{name: p, number: number, near: near}
	l.Waiters(p.Name, func(c *kernel.Claim) bool {
		if near || !l.MustLeave(c) {
			first.waiter = c
		}
		return first.waiter == nil
	})
	return first
}

// handOver goes through the waiters in their order while there is work left in the entry.
func (l *line) handOver() {
	for len(l.heads) > 0 {
		this := l.heads[0]
		l.heads = l.heads[1:]
		// What was granted together with another, or left with it, waits no more.
		if l.Waits(this.waiter) && !(this.near && l.serve(this)) {
			if l.Ends() {
				return
			}
			l.awaited.Set(this.number)
			continue
		}
		if next := l.headOf(this.name, this.number, this.near); next.waiter != nil {
			at, _ := slices.BinarySearchFunc(l.heads, next, compareHeads)
			l.heads = slices.Insert(l.heads, at, next)
		}
	}
}

// serve serves a waiter, and sees what those who were granted with it are in the way of.
func (l *line) serve(this head) bool {
	together := l.Serve(this.waiter)
	for _, c := range together {
		if p := parse(c.Resource); p != nil && p.Area == l.area {
			if number, ok := l.names.Number(p); ok {
				l.see(p, number)
			}
		}
	}
	return together != nil
}

// blocks reports whether another name of the area is in the way of a waiter. It knows nothing of other areas.
func (l *line) blocks(c *kernel.Claim) (blocks, known bool) {
	p := parse(c.Resource)
	if p == nil || p.Area != l.area {
		return false, false
	}
	near := l.names.Near(p)
	blocks = near.Meets(l.held) || c.Slots == 0 && near.Meets(l.shared)
	return blocks || near.Meets(l.awaited), true
}

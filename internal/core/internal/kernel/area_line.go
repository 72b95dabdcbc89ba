package kernel

import (
	"slices"

	"github.com/leasehold/leasehold/internal/pattern"
)

// An areaLine is the first waiters of all names of an area in their order, and what is in the way of which. Each name
// is looked at once, however many overlap.
type areaLine struct {
	t     *turn
	sp    *space
	area  string
	heads []areaHead // that were not looked at yet
	moved bool       // somebody was granted something, or left
	ends  bool       // there is no work left for those of whom one would move
	look  furtherLook

	// The numbers that names have in the area.
	held    pattern.Bits // nobody can have what overlaps them
	shared  pattern.Bits // nobody but who shares it
	awaited pattern.Bits // by somebody who comes before all heads
}

// An areaHead is the first waiter of a name.
type areaHead struct {
	waiter *Claim
	name   *pattern.Pattern
	number int
	near   bool // something may be free for it
}

// lineCost is what it costs to see a name and to put its first waiter in order.
const lineCost = 2

// newAreaLine returns the line of an area in which something may be free of a name.
func (t *turn) newAreaLine(this wakeup, p *pattern.Pattern) *areaLine {
	sp := this.space
	l := &areaLine{t: t, sp: sp, area: p.Area, look: newFurtherLook(this)}
	near := sp.patterns.Near(p)
	sp.patterns.Each(p.Area, func(q *pattern.Pattern, number int) {
		l.see(q, number)
		if head := l.headOf(q, number, near.Has(number) || q.Name == p.Name); head.waiter != nil {
			l.heads = append(l.heads, head)
		}
	})
	t.work.take(lineCost * sp.patterns.Of(p.Area))
	slices.SortFunc(l.heads, func(a, b areaHead) int { return compareHeads(a.waiter, b.waiter) })
	return l
}

// see notes what a name is in the way of.
func (l *areaLine) see(p *pattern.Pattern, number int) {
	l.held.Clear(number)
	l.shared.Clear(number)
	r, ok := l.sp.resources.Get(p.Name)
	if !ok {
		return
	}
	if l.t.excludes(r, &Claim{Slots: 1}) {
		l.held.Set(number)
	} else if l.t.excludes(r, &Claim{}) {
		l.shared.Set(number)
	}
}

// headOf returns the first waiter of a name, and of one for which nothing is free the first that still wants it.
func (l *areaLine) headOf(p *pattern.Pattern, number int, near bool) areaHead {
	head := areaHead{name: p, number: number, near: near}
	l.sp.queue.Ascend(beforeAll(p.Name), func(c *Claim) bool {
		if c.Resource != p.Name {
			return false
		}
		if _, gone := l.t.mustLeave(l.sp, c); near || !gone {
			head.waiter = c
		}
		return head.waiter == nil
	})
	return head
}

// handOver goes through the waiters in their order while there is work left in the entry, for what became free of a
// path.
func (l *areaLine) handOver(this wakeup) {
	for len(l.heads) > 0 {
		head := l.heads[0]
		l.heads = l.heads[1:]
		// What was granted together with another, or left with it, waits no more.
		if now, _ := l.sp.claims.Get(head.waiter.ID); now == head.waiter && !(head.near && l.serve(this, head)) {
			if l.ends {
				return
			}
			l.awaited.Set(head.number)
			continue
		}
		if next := l.headOf(head.name, head.number, head.near); next.waiter != nil {
			at, _ := slices.BinarySearchFunc(l.heads, next, func(a, b areaHead) int {
				return compareHeads(a.waiter, b.waiter)
			})
			l.heads = slices.Insert(l.heads, at, next)
		}
	}
}

// serve is that of the state for a waiter in the line.
func (l *areaLine) serve(this wakeup, head areaHead) bool {
	if !l.look.reaches(l.t, this, head.waiter) {
		return false
	}
	together := l.t.together(l.sp, head.waiter)
	if !l.t.serve(this, head.waiter) {
		return false
	}
	l.moved = true
	for _, c := range together {
		if p := l.t.pattern(c.Resource); p != nil && p.Area == l.area {
			if number, ok := l.sp.patterns.Number(p); ok {
				l.see(p, number)
			}
		}
	}
	return true
}

// blocks reports whether another name of the area is in the way of a waiter.
func (l *areaLine) blocks(p *pattern.Pattern, c *Claim) bool {
	near := l.sp.patterns.Near(p)
	if l.t.plants(PassInArea) {
		return near.Meets(l.held) || c.Slots == 0 && near.Meets(l.shared)
	}
	return near.Meets(l.held) || c.Slots == 0 && near.Meets(l.shared) || near.Meets(l.awaited)
}

package kernel

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// A name such as repo/web:src/auth/** is a pattern of paths in an area. It is a resource like any other, and is granted
// only if nothing that overlaps it is in the way.

// Areas know of one namespace which names of areas are held, waited for or at rest, and which of them are in the way of
// which: see package area. They are asked only about names of areas, which are told by themselves.
type Areas interface {
	// Refuse refuses names that are no patterns, that overlap each other, or are too many. Others may be among them.
	Refuse(items []Item) *leasehold.Error
	Overlap(path, other string) bool
	// Overlapping calls yield with the resources in use whose names overlap a path, except the one of that path, until
	// it returns false. It returns how many it looked at.
	Overlapping(n Namespace, path string, yield func(*Resource) bool) (looked int)
	// InTheWay returns the resource of another name that keeps a claim from being granted, and how many it looked at.
	InTheWay(n Namespace, c *Claim) (other *Resource, looked int)
	// Ahead counts the waiters for other names that a waiter has to let go first, and says what that took.
	Ahead(n Namespace, c *Claim) (count, work int)
	// HandOver serves those who wait in the area of a path, for what became free of it.
	HandOver(q *AreaQueue, path string)
	// Stored and Dropped tell what became of a resource.
	Stored(r *Resource)
	Dropped(path string)
	Copy() Areas

	// Check says what is wrong, and MayBeInTheWay whether another name is, or was until a tick comes to it.
	Check(n Namespace, that func(ok bool, format string, args ...any))
	MayBeInTheWay(n Namespace, c *Claim) bool
}

// LooksPerUnit is how many names are compared in a unit of work.
const LooksPerUnit = 4

// mayTakeNames refuses names of areas that cannot be had.
func (sp *space) mayTakeNames(items []Item) *leasehold.Error {
	if !slices.ContainsFunc(items, func(item Item) bool { return pattern.In(item.Resource) }) {
		return nil
	}
	return sp.areas.Refuse(slices.Clone(items)) // a copy, or those of every request would be on the heap
}

// overlapping calls yield with the resources in use whose names overlap a path: see Areas.
func (s *State) overlapping(sp *space, path string, yield func(*Resource) bool) (looked int) {
	if !pattern.In(path) {
		return 0
	}
	return sp.areas.Overlapping(Namespace{s, sp}, path, yield)
}

// excludedBy returns the resource of another name that keeps a claim from being granted, and how many it looked at.
func (s *State) excludedBy(sp *space, c *Claim) (other *Resource, looked int) {
	if !pattern.In(c.Resource) {
		return nil, 0
	}
	return sp.areas.InTheWay(Namespace{s, sp}, c)
}

// overlapped reports whether a waiter cannot be granted because of another name.
func (l *look) overlapped(this wakeup, c *Claim) bool {
	if this.area != nil && this.area.Blocks != nil {
		if blocks, known := this.area.Blocks(c); known {
			return blocks
		}
	}
	other, looked := l.excludedBy(this.space, c)
	l.work.take(looked / LooksPerUnit)
	return other != nil
}

// newcomerOverlaps returns the resource that keeps somebody who does not wait yet from being granted; nil if there is
// none. Those who wait with the same priority go first.
func (l *look) newcomerOverlaps(sp *space, c *Claim, priority int) *Resource {
	if !pattern.In(c.Resource) {
		return nil
	}
	asks := Claim{Resource: c.Resource, Slots: c.Slots, Wait: &Wait{Priority: priority, Order: math.MaxUint64}}
	other, looked := l.excludedBy(sp, &asks)
	l.work.take(looked / LooksPerUnit)
	return other
}

// heldOverlapping answers a request for a path that finds another name in its way. Those who may not see that are told
// that there is one, and no more.
func (l *look) heldOverlapping(sp *space, other *Resource, path string, position int) Answer {
	if !l.seesAll(sp, other) {
		return Answer{Err: &leasehold.Error{Code: leasehold.Held, Position: position, Message: fmt.Sprintf(
			"%s overlaps a name that is not free", path)}}
	}
	answer := l.held(sp, other, 0)
	answer.Err.Position = position
	answer.Err.Message += fmt.Sprintf("; this request for %s overlaps it", path)
	return answer
}

// behindAll is the place of somebody who comes now, with the least priority.
var behindAll = &Wait{Priority: EarlyPriority, Order: math.MaxUint64}

// overlappingAhead counts the waiters for other names that a waiter has to let go first. When the work is spent it
// counts none: there may be a thousand names, and an entry may have thousands of answers.
func (s *State) overlappingAhead(sp *space, c *Claim, w *work) int {
	if !pattern.In(c.Resource) || w.spent() {
		return 0
	}
	n, cost := sp.areas.Ahead(Namespace{s, sp}, c)
	w.take(cost)
	return n
}

// overlapsWaiters reports whether somebody waits for another name that overlaps a path.
func (s *State) overlapsWaiters(sp *space, path string) (waiting bool) {
	s.overlapping(sp, path, func(r *Resource) bool {
		waiting = r.Waiting > 0
		return !waiting
	})
	return waiting
}

// settleArea ends what is over in an area and may be in the way of a name: time does what is due, as a tick would,
// since the end of one lease may let others in that are in the way in turn. What sessions left behind is not due by
// time.
func (t *turn) settleArea(sp *space, path string) {
	t.passTime()
	if t.nothingDue() && !sp.leaving() {
		return
	}
	var others []*Resource
	looked := t.overlapping(sp, path, func(r *Resource) bool {
		others = append(others, r)
		return true
	})
	if sp.leaving() { // else it depends on what this node has in memory whether it looks
		t.work.take((looked + len(others)) / LooksPerUnit)
	}
	for _, r := range others {
		claim, exclusive := sp.claims.Get(r.Claim)
		if !exclusive {
			t.settleSharers(sp, r)
		} else if _, _, over := t.isOver(sp, claim); over && t.work.spent() {
			t.unsettled = true
		} else if over {
			t.settleClaim(sp, claim)
		}
	}
}

// areaOf returns what all names of an area begin with, by one of them.
func areaOf(path string) string { return path[:strings.IndexByte(path, ':')+1] }

// handOverArea grants what is free of an area, by a change of one name, to those who wait for what overlaps it.
func (t *turn) handOverArea(this wakeup) {
	sp, area := this.space, areaOf(this.path)
	next := firstFrom(sp, area)
	if t.quarantined() || next == nil || !strings.HasPrefix(next.Resource, area) {
		return
	}
	if t.work.spent() {
		t.putOff(sp, &Chore{Kind: HandOver, Name: this.path})
		return
	}
	q := &AreaQueue{Namespace: Namespace{t.State, sp}, t: t, look: newFurtherLook(this), this: this}
	q.this.area = q
	sp.areas.HandOver(q, this.path)
}

// An AreaQueue is how far those who wait in an area have been served, by the command at hand.
type AreaQueue struct {
	Namespace
	t    *turn
	this wakeup
	look furtherLook

	Blocks func(c *Claim) (blocks, known bool) // whether another name of the area is in the way; nil: nobody knows yet
	moved  bool                                // somebody was granted something, or left
	ends   bool                                // there is no work left for those of whom one would move
}

// Serve grants to a waiter, or lets it leave if it is gone. It returns those who were granted, or left, with it; nil if
// it keeps its place.
func (q *AreaQueue) Serve(c *Claim) []*Claim {
	if !q.look.reaches(q.t, q.this, c) {
		return nil
	}
	together := q.t.together(q.sp, c)
	if !q.t.serve(q.this, c) {
		return nil
	}
	q.moved = true
	return together
}

// Ends reports that the others have to wait for the next entry.
func (q *AreaQueue) Ends() bool { return q.ends }

// Take counts work.
func (q *AreaQueue) Take(n int) { q.t.work.take(n) }

// indexAreas finds the names of areas that are in use, in a state that was read.
func (t *turn) indexAreas() {
	t.spaces.Scan(func(_ string, sp *space) bool {
		var found []*Resource
		sp.resources.Ascend(pattern.Areas, func(path string, r *Resource) bool {
			if pattern.In(path) && r.InUse() {
				found = append(found, r)
			}
			return strings.HasPrefix(path, pattern.Areas)
		})
		for _, r := range found {
			timed := *r
			t.setResource(sp, &timed)
		}
		return true
	})
}

// overlapped reports whether another name is in the way of a waiter, or may be until a tick has come to it.
func (c *checker) overlapped(s *look, sp *space, w *Claim) (is bool) {
	if !pattern.In(w.Resource) {
		return false
	}
	area := areaOf(w.Resource)
	sp.chores.Scan(func(_ string, chore *Chore) bool {
		is = is || chore.Kind == HandOver && strings.HasPrefix(chore.Name, area) || chore.Kind == CollectSession
		return true
	})
	return is || sp.areas.MayBeInTheWay(Namespace{s.State, sp}, w)
}

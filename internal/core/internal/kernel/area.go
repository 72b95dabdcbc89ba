package kernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// A name such as repo/web:src/auth/** is a pattern of paths in an area. It is a resource like any other, and is granted
// only if nothing that overlaps it is in the way: see excludedBy. Package pattern says what overlaps.

// pattern returns the pattern that a path is; nil if it is none.
func (s *State) pattern(path string) *pattern.Pattern {
	if !pattern.In(path) {
		return nil
	}
	p, err := pattern.Parse(path)
	if err != nil {
		return nil
	}
	return p
}

// placePattern keeps a name among those of its area for as long as it is held, waited for or at rest.
func (sp *space) placePattern(p *pattern.Pattern, r *Resource) {
	switch {
	case p == nil:
	case inUse(r):
		sp.patterns.Set(p)
	default:
		sp.patterns.Delete(p)
	}
}

func inUse(r *Resource) bool { return r.held() || r.Waiting > 0 || len(r.more().Rests) > 0 }

// indexPatterns finds the names of areas that are in use, in a state that was read.
func (t *turn) indexPatterns() {
	t.spaces.Scan(func(_ string, sp *space) bool {
		var found []*Resource
		sp.resources.Ascend(pattern.Areas, func(path string, r *Resource) bool {
			if inUse(r) && t.pattern(path) != nil {
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

// mayTakePatterns refuses names of areas that are no patterns, that overlap each other, or are too many.
func (s *State) mayTakePatterns(sp *space, items []Item) *leasehold.Error {
	var asked []*pattern.Pattern
	for _, item := range items {
		if !pattern.In(item.Resource) {
			continue
		}
		p, err := pattern.Parse(item.Resource)
		if err != nil {
			return refuse(leasehold.Invalid, "%v", err).Err
		}
		if i := slices.IndexFunc(asked, p.Overlaps); i >= 0 {
			return refuse(leasehold.Invalid, "%s and %s overlap, and are asked for at once: leave one out",
				asked[i].Name, p.Name).Err
		}
		asked = append(asked, p)
		if n := sp.patterns.Of(p.Area); n+len(asked) > leasehold.MaxAreaNames && !sp.patterns.Has(p) {
			return refuse(leasehold.Limited, "%d names of %s are held, waited for or at rest: at most %d are allowed",
				n, p.Area, leasehold.MaxAreaNames).Err
		}
	}
	return nil
}

// noLinkedPattern refuses a record that would stand for a lease on a path of an area: what a transaction takes is
// judged one by one, and might overlap.
func (s *State) noLinkedPattern(l *Link) *leasehold.Error {
	if s.pattern(l.Resource) == nil {
		return nil
	}
	return refuse(leasehold.Refused, "%s is a path in an area: no record stands for a lease on it", l.Resource).Err
}

// overlapping calls yield with the resources in use whose names overlap a path, except the one of that path, until it
// returns false. It returns how many it looked at.
func (s *State) overlapping(sp *space, path string, yield func(*Resource) bool) (looked int) {
	p := s.pattern(path)
	if p == nil {
		return 0
	}
	return sp.patterns.Overlapping(p, func(other *pattern.Pattern) bool {
		if other.Name == path {
			return true
		}
		r, _ := sp.resources.Get(other.Name)
		return yield(r)
	})
}

// excludedBy returns the resource of another name that keeps a claim from being granted: one that overlaps it and is
// held, unless both are shared, or rests, or is waited for by somebody with a place before. Those who hold it go before
// those who wait, since they are the ones to ask. It also returns how many it looked at.
func (s *State) excludedBy(sp *space, c *Claim) (other *Resource, looked int) {
	met := 0
	looked = s.overlapping(sp, c.Resource, func(r *Resource) bool {
		met++
		if s.excludes(r, c) {
			other = r
			return false
		}
		if other == nil && s.awaitedBefore(sp, r, c) {
			other = r
		}
		return true
	})
	return other, looked + met
}

// excludes reports whether a resource is held, or rests, so that a claim that overlaps it cannot be granted.
func (s *State) excludes(r *Resource, c *Claim) bool {
	resting, all := r.rests(s.now)
	return r.Claim != "" || all || c.Slots == 0 && (r.sharers() > 0 || resting > 0)
}

// awaitedBefore reports whether somebody waits for a resource at a place before that of a claim.
func (s *State) awaitedBefore(sp *space, r *Resource, c *Claim) (before bool) {
	if r.Waiting == 0 {
		return false
	}
	sp.queue.Ascend(beforeAll(r.Path), func(waiter *Claim) bool {
		if waiter.Resource != r.Path || !comesBefore(waiter, c) {
			return false
		}
		_, gone := s.mustLeave(sp, waiter)
		before = !gone
		return gone
	})
	return before
}

// comesBefore reports whether a waiter comes before another in the order of their area.
func comesBefore(a, b *Claim) bool { return compareWaits(a, b) < 0 }

func compareWaits(a, b *Claim) int {
	return cmp.Or(cmp.Compare(b.Wait.Priority, a.Wait.Priority), cmp.Compare(a.Wait.Order, b.Wait.Order))
}

// looksPerUnit is how many names are compared in a unit of work.
const looksPerUnit = 4

// overlapped reports whether a waiter cannot be granted because of another name.
func (l *look) overlapped(this wakeup, c *Claim) bool {
	p := l.pattern(c.Resource)
	if p == nil {
		return false
	}
	if this.area != nil && this.area.area == p.Area {
		return this.area.blocks(p, c)
	}
	other, looked := l.excludedBy(this.space, c)
	l.work.take(looked / looksPerUnit)
	return other != nil
}

// newcomerOverlaps returns the resource that keeps somebody who does not wait yet from being granted; nil if there is
// none. Those who wait with the same priority go first.
func (l *look) newcomerOverlaps(sp *space, c *Claim, priority int) *Resource {
	if !pattern.In(c.Resource) || l.plants(MissOverlap) {
		return nil
	}
	asks := Claim{Resource: c.Resource, Slots: c.Slots, Wait: &Wait{Priority: priority, Order: math.MaxUint64}}
	other, looked := l.excludedBy(sp, &asks)
	l.work.take(looked / looksPerUnit)
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
var behindAll = &Wait{Priority: earlyPriority, Order: math.MaxUint64}

// overlappingAhead counts the waiters for other names that a waiter has to let go first. When the work is spent it
// counts none: there may be a thousand names, and an entry may have thousands of answers.
func (s *State) overlappingAhead(sp *space, c *Claim, w *work) (n int) {
	if w.spent() {
		return 0
	}
	met := 0
	looked := s.overlapping(sp, c.Resource, func(r *Resource) bool {
		met++
		n += ahead(sp, r, c)
		return true
	})
	w.take(looked/looksPerUnit + met)
	return n
}

// fewWaiters are counted one by one.
const fewWaiters = 8

// ahead counts the waiters of a resource that come before a waiter of another one.
func ahead(sp *space, r *Resource, c *Claim) (n int) {
	if r.Waiting > fewWaiters {
		return rank(sp, &Claim{Resource: r.Path, Wait: c.Wait}) - rank(sp, beforeAll(r.Path))
	}
	if r.Waiting > 0 {
		sp.queue.Ascend(beforeAll(r.Path), func(other *Claim) bool {
			before := other.Resource == r.Path && comesBefore(other, c)
			if before {
				n++
			}
			return before
		})
	}
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
func (t *turn) settleArea(sp *space, p *pattern.Pattern) {
	t.passTime()
	if t.nothingDue() && !sp.leaving() {
		return
	}
	var others []*Resource
	looked := t.overlapping(sp, p.Name, func(r *Resource) bool {
		others = append(others, r)
		return true
	})
	if sp.leaving() { // else it depends on what this node has in memory whether it looks
		t.work.take((looked + len(others)) / looksPerUnit)
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

// handOverArea grants what is free of an area, by a change of one name, to those who wait for what overlaps it. It goes
// through the first waiters of all names in their order. A grant can let in only those behind it, so that once is
// enough; what does not overlap the name is looked at in a turn of its own, and only keeps its place.
func (t *turn) handOverArea(this wakeup, p *pattern.Pattern) {
	sp := this.space
	next := firstFrom(sp, p.Area+":")
	if t.quarantined() || next == nil || !strings.HasPrefix(next.Resource, p.Area+":") {
		return
	}
	if t.work.spent() {
		t.putOff(sp, &Chore{Kind: HandOver, Name: p.Name})
		return
	}
	this.area = t.newAreaLine(this, p)
	this.area.handOver(this)
}

// compareHeads orders the first waiters of several names. Those of one request have the same place.
func compareHeads(a, b *Claim) int {
	return cmp.Or(compareWaits(a, b), cmp.Compare(a.Resource, b.Resource))
}

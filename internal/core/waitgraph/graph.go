// Package waitgraph finds parties that wait for each other in a cycle. It knows names and numbers
// of slots alone; core says who has what, and who waits for it.
//
// To have slots of a resource it is enough that some of its holders go, not a certain
// one. So it does not look for cycles but for parties that can never go on: let
// every party finish that waits for nothing, then every one that could have all it waits
// for, and so on. Those that are left are stuck.
package waitgraph

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
)

// A Graph has the parties that a request would have to wait for, directly or not.
type Graph struct {
	parties btree.Map[string, *Party]
}

// A Party is somebody who cannot go on while it waits.
type Party struct {
	Name string

	wants  []*Want
	blocks []edge // from it to the wants that it is in the way of
	lacks  int    // how many of its wants cannot be had
	done   bool   // it can go on
}

// A Want is one place in a queue.
type Want struct {
	Holder   string // who waits
	Resource string
	Slots    uint32 // that must be free for it, and for those before it; 0: all
	Room     int    // slots that are left if nobody is in the way

	party    *Party // whose want it is
	blockers []blocker
	ahead    []*Party
	behind   *Party

	// How many of those in the way cannot go on:
	before  int // stand before it
	blocked int // have some
	whole   int // have all
	taken   int // slots that they have
}

// A blocker is another party that has some of what is wanted.
type blocker struct {
	party *Party
	slots uint32
}

// An edge is what a party has of what another one wants, or that it stands before it.
type edge struct {
	want  *Want
	slots uint32
	ahead bool
}

// Party returns the party of a name, and whether that is new in the graph.
func (g *Graph) Party(name string) (p *Party, isNew bool) {
	if p, ok := g.parties.Get(name); ok {
		return p, false
	}
	p = &Party{Name: name}
	g.parties.Set(name, p)
	return p, true
}

// Scan calls see with each party in the order of their names, until it returns false.
func (g *Graph) Scan(see func(*Party) bool) {
	g.parties.Scan(func(_ string, p *Party) bool { return see(p) })
}

// Add says that a party wants something.
func (p *Party) Add(w *Want) {
	w.party = p
	p.wants = append(p.wants, w)
}

// BlockedBy says that a party has a number of slots of what is wanted; 0: all.
func (w *Want) BlockedBy(p *Party, slots uint32) { w.blockers = append(w.blockers, blocker{p, slots}) }

// After says that a party is before the want in the queue, and wants more than this resource.
func (w *Want) After(p *Party) { w.ahead = append(w.ahead, p) }

// AfterLarger says that a party would be before the want in the queue, and needs more slots.
func (w *Want) AfterLarger(p *Party) { w.behind = p }

// Needs makes a want one for as many slots as a waiter before it needs, if that is more.
func (w *Want) Needs(slots uint32) {
	if NeedsMore(slots, w.Slots) {
		w.Slots = slots
	}
}

// NeedsMore reports whether a is a need for more slots than b, where 0 is all of them.
func NeedsMore(a, b uint32) bool { return b != 0 && (a == 0 || a > b) }

// Finish lets all parties go on that can, and thereby others. Each edge is looked at once, so
// the cost is that of the graph, however long the chains are.
func (g *Graph) Finish() {
	var goOn []*Party
	g.Scan(func(p *Party) bool {
		for _, w := range p.wants {
			w.connect()
		}
		if p.lacks == 0 {
			p.done = true
			goOn = append(goOn, p)
		}
		return true
	})
	for len(goOn) > 0 {
		last := len(goOn) - 1
		p := goOn[last]
		goOn = goOn[:last]
		for _, e := range p.blocks {
			if other := e.want.party; e.remove() && other.lacks == 0 {
				other.done = true
				goOn = append(goOn, other)
			}
		}
	}
}

// CanGoOn reports whether a party has, some day, all that it waits for. Finish finds out.
func (p *Party) CanGoOn() bool { return p.done }

// connect makes an edge from each that is in the way of a want, and counts the want if it cannot
// be had.
func (w *Want) connect() {
	for _, b := range w.blockers {
		b.party.blocks = append(b.party.blocks, edge{w, b.slots, false})
		w.count(b.slots, false, 1)
	}
	for _, before := range w.ahead {
		before.blocks = append(before.blocks, edge{w, 0, true})
		w.count(0, true, 1)
	}
	if !w.canBeHad() {
		w.party.lacks++
	}
}

// count counts one more or one less that is in the way.
func (w *Want) count(slots uint32, ahead bool, more int) {
	switch {
	case ahead:
		w.before += more
		return
	case slots == 0:
		w.whole += more
	}
	w.blocked += more
	w.taken += more * int(slots)
}

// remove takes a party out of the way of a want, and reports whether that was the last thing
// that the want lacked.
func (e edge) remove() bool {
	could := e.want.canBeHad()
	e.want.count(e.slots, e.ahead, -1)
	if could || !e.want.canBeHad() {
		return false
	}
	e.want.party.lacks--
	return true
}

// canBeHad reports whether there is room once all are gone who can go on.
func (w *Want) canBeHad() bool {
	if w.before > 0 || w.blocked > 0 && (w.Slots == 0 || w.whole > 0) {
		return false
	}
	return w.Slots == 0 || w.Room-w.taken >= int(w.Slots)
}

// Cycle returns the shortest way from a party that is stuck back to itself; nil if there is none.
func (g *Graph) Cycle(from *Party) []leasehold.Wait {
	steps := []step{{party: from, before: -1}}
	var seen btree.Map[string, bool]
	for i := 0; i < len(steps); i++ {
		for _, w := range steps[i].party.wants {
			for _, next := range w.stuckOn() {
				made := step{next, i, leasehold.Wait{Holder: w.Holder, Resource: w.Resource}}
				if next == from {
					return trace(steps, made)
				}
				if _, known := seen.Set(next.Name, true); !known {
					steps = append(steps, made)
				}
			}
		}
	}
	return nil
}

// A step goes from one party to another that it waits for.
type step struct {
	party  *Party
	before int // the step before it
	wait   leasehold.Wait
}

// trace walks back from the last step of a cycle to its first.
func trace(steps []step, last step) []leasehold.Wait {
	cycle := []leasehold.Wait{last.wait}
	for i := last.before; i > 0; i = steps[i].before {
		cycle = append([]leasehold.Wait{steps[i].wait}, cycle...)
	}
	return cycle
}

// stuckOn returns the parties in the way that are stuck themselves.
func (w *Want) stuckOn() (list []*Party) {
	if w.canBeHad() {
		return nil
	}
	for _, b := range w.blockers {
		if !b.party.done {
			list = append(list, b.party)
		}
	}
	for _, p := range w.ahead {
		if !p.done {
			list = append(list, p)
		}
	}
	if w.behind != nil {
		list = append(list, w.behind)
	}
	return list
}

// maxTold is how many bytes of names are told of a cycle: it can have as many waits as there are parties.
const maxTold = 128 << 10

// Told returns the waits of a cycle that are told, from the first on.
func Told(cycle []leasehold.Wait) []leasehold.Wait {
	bytes := 0
	for i, w := range cycle {
		if bytes += len(w.Holder) + len(w.Resource); bytes > maxTold {
			return cycle[:i]
		}
	}
	return cycle
}

// Explain says in words what a cycle is.
func Explain(cycle []leasehold.Wait) string {
	told := Told(cycle)
	steps := make([]string, len(told))
	for i, w := range told {
		waits := "waits"
		if i == 0 {
			waits = "would wait"
		}
		next := cycle[(i+1)%len(cycle)].Holder
		what := w.Resource
		if what == "" {
			what = "something" // that the reader may not know
		}
		steps[i] = fmt.Sprintf("%s %s for %s behind %s", w.Holder, waits, what, next)
	}
	if n := len(cycle) - len(steps); n > 0 {
		steps = append(steps, fmt.Sprintf("and so on, over %d more", n))
	}
	return "this wait would never end: " + strings.Join(steps, ", ") +
		"; release what you hold first, or acquire all at once"
}

package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
)

// Parties that wait for each other in a circle would wait until their leases end. The
// request that closes such a circle is refused.
//
// A party is whoever stands still while it waits: what the client says, else a session,
// else a holder. It is not waiting for itself: two threads of one party may well want
// the same resource.
//
// To have slots of a resource it is enough that some of its holders go, not a certain
// one. So it is not circles that are looked for but parties that can never go on: let
// everybody who waits for nothing finish, then everybody who could have all it waits
// for, and so on; whoever is left is stuck.

// Not looked for is what several threads of one party may do to each other: a waiter
// before another counts by the slots that it needs, and, if it wants several resources,
// until its party goes on; not by what else its party waits for elsewhere. A party that
// waits for one thing at a time is told of every circle that it would close.

// maxTangle is how many leases and waiters are looked at. What is entangled further
// than that is not looked for; waits end anyway. Below level 4, those before a waiter are
// not counted.
const maxTangle = 4096

// A tangle is the parties that a request would have to wait for, directly or not.
type tangle struct {
	s       *State
	sp      *space
	parties btree.Map[string, *party]
	asks    *party
	claims  []*Claim // that it asks for, as they would wait
	unseen  []*party // of which it is not known yet what they wait for
	looked  int
}

type party struct {
	name    string
	wants   []*want
	hinders []hindrance
	lacks   int  // how many of its wants can not be had
	done    bool // it can go on
}

// A want is one place in a queue.
type want struct {
	holder   string // who waits
	path     string
	slots    uint32    // that must be free for it, and for those before it; 0: all
	room     int       // slots that are left if no blocker is in the way
	blockers []blocker // other parties that have some of it
	ahead    []*party  // that stand before it, and want more than this resource
	behind   *party    // who asks, if it would stand before it and need more slots

	party *party // whose want it is

	// How many of those in the way can not go on:
	before  int // stand before it
	blocked int // have some
	whole   int // have all
	taken   int // slots that they have
}

// A hindrance is what a party has of what another one wants, or that it stands before it.
type hindrance struct {
	want  *want
	slots uint32
	ahead bool
}

type blocker struct {
	party *party
	slots uint32
}

func (c *Claim) party() string {
	switch {
	case c.Terms != nil && c.Terms.Party != "":
		return "p" + c.Terms.Party
	case c.Session != "":
		return "s" + c.Session
	}
	return "h" + c.Holder
}

// deadlock refuses claims that would close a circle if they waited.
func (s *State) deadlock(sp *space, claims []*Claim, priority int) *leasehold.Error {
	if sp.parties.Len() == 0 {
		return nil // whoever is in the way waits for nothing
	}
	t := newTangle(s, sp, claims[0])
	for _, c := range claims {
		waiter := *c
		waiter.Wait = &Wait{Priority: priority, Order: sp.arrivals + 1}
		t.claims = append(t.claims, &waiter)
	}
	for _, c := range t.claims {
		t.want(t.asks, c)
	}
	if t.plain() || t.canGoOn() {
		return nil
	}
	cycle := t.cycle(t.asks)
	if cycle == nil {
		return nil // others are stuck, and would be without it
	}
	if !newTangle(s, sp, claims[0]).canGoOn() {
		return nil // it is stuck as it is: an operator may have moved somebody
	}
	return &leasehold.Error{Code: leasehold.Refused, Message: tell(cycle), Cycle: cycle}
}

func newTangle(s *State, sp *space, asks *Claim) *tangle {
	t := &tangle{s: s, sp: sp}
	t.asks = t.party(asks)
	return t
}

// canGoOn finds all that bears on the one who asks, and tells whether it can go on some
// day; also if that is too much to look at.
func (t *tangle) canGoOn() bool {
	for len(t.unseen) > 0 && t.looked <= maxTangle {
		next := t.unseen[0]
		t.unseen = t.unseen[1:]
		t.wait(next)
	}
	if t.looked > maxTangle {
		return true
	}
	t.untangle()
	return t.asks.done
}

// plain tells whether those in the way of the new claims wait for nothing, and nobody
// would stand behind these. That is so mostly, and seen without a look at what else
// the one who asks waits for, which may be much.
func (t *tangle) plain() (plain bool) {
	plain = true
	t.parties.Scan(func(name string, p *party) bool {
		if p != t.asks {
			t.sp.parties.Ascend(binding{session: name}, func(b binding) bool {
				plain = b.session != name
				return false
			})
		}
		return plain
	})
	for _, new := range t.claims {
		t.sp.queue.Ascend(new, func(behind *Claim) bool {
			plain = plain && behind.Resource != new.Resource
			return false
		})
	}
	return plain
}

func tell(cycle []leasehold.Wait) string {
	steps := make([]string, len(cycle))
	for i, w := range cycle {
		waits := "waits"
		if i == 0 {
			waits = "would wait"
		}
		steps[i] = fmt.Sprintf("%s %s for %s behind %s", w.Holder, waits, w.Resource, cycle[(i+1)%len(cycle)].Holder)
	}
	return "this wait would never end: " + strings.Join(steps, ", ") + "; release what you hold first, or acquire all at once"
}

// party returns the party of a claim.
func (t *tangle) party(c *Claim) *party {
	name := c.party()
	if p, ok := t.parties.Get(name); ok {
		return p
	}
	p := &party{name: name}
	t.parties.Set(name, p)
	t.unseen = append(t.unseen, p)
	return p
}

// wait finds what a party waits for.
func (t *tangle) wait(p *party) {
	var waiting []*Claim
	t.sp.parties.Ascend(binding{session: p.name}, func(b binding) bool {
		if b.session != p.name {
			return false
		}
		if c, _ := t.sp.claims.Get(b.id); !t.over(c) {
			waiting = append(waiting, c)
		}
		return t.look()
	})
	for _, c := range waiting {
		if t.s.atLeast(Level4) && t.looked > maxTangle {
			return
		}
		t.want(p, c)
	}
}

// look counts what was looked at, and says whether to go on.
func (t *tangle) look() bool {
	t.looked++
	t.s.work.take(lookCost)
	return t.looked <= maxTangle
}

// over tells whether a claim is over at the stamp, collected or not: it is in nobody's
// way then.
func (t *tangle) over(c *Claim) bool {
	_, _, over := t.s.over(t.sp, c)
	return over
}

// want finds who is in the way of a waiter.
func (t *tangle) want(p *party, c *Claim) {
	w := &want{holder: c.Holder, path: c.Resource, slots: c.Slots}
	t.queueFor(p, c, w)
	if r, ok := t.sp.resources.Get(c.Resource); ok {
		w.room = t.sp.capacity(r, t.sp.definition(r.Path))
		t.sp.holders(r, func(holder *Claim) bool {
			if t.over(holder) {
				return t.look()
			}
			if other := t.party(holder); other != p && !t.abandoned(holder) {
				w.blockers = append(w.blockers, blocker{other, holder.Slots})
			}
			return t.look()
		})
	}
	t.sp.joint.Ascend(beforeAll(c.Resource), func(before *Claim) bool {
		if before.Resource != c.Resource || !t.sp.queue.Less(before, c) {
			return false
		}
		if t.over(before) {
			return t.look()
		}
		if other := t.party(before); other != p {
			w.ahead = append(w.ahead, other)
		}
		return t.look()
	})
	for _, new := range t.claims {
		if p == t.asks || new.Resource != c.Resource || !t.sp.queue.Less(new, c) {
			continue
		}
		w.after(new) // which has a higher priority
		if len(t.claims) > 1 {
			w.ahead = append(w.ahead, t.asks)
		} else if needsMore(new, c.Slots) {
			w.behind = t.asks
		}
	}
	p.wants = append(p.wants, w)
}

// abandoned reports whether a lease may be of an earlier life of the one who asks: it has the
// same name and nothing but that name to be known by, asks for what it holds, and lets it end
// by time. Whoever waits for such a lease does not wait for the one who asks.
func (t *tangle) abandoned(c *Claim) bool {
	if !t.s.atLeast(Level4) || c.Session != "" || c.terms().Party != "" || c.party() != t.asks.name || t.s.deadlineOf(t.sp, c) == 0 {
		return false
	}
	return slices.ContainsFunc(t.claims, func(asked *Claim) bool { return asked.Resource == c.Resource })
}

// maxAhead is how many of those before a waiter are asked for how much they need.
const maxAhead = 256

// queueFor finds how much must be free before it is a waiter's turn: those before it
// of other parties may need more than it does. Who needs all there is finds no larger
// need, however long the queue.
func (t *tangle) queueFor(p *party, c *Claim, w *want) {
	looked := 0
	t.sp.queue.Ascend(beforeAll(c.Resource), func(before *Claim) bool {
		looked++
		if w.slots == 0 || looked > maxAhead || before.Resource != c.Resource || !t.sp.queue.Less(before, c) {
			return false
		}
		if before.party() != p.name && !t.over(before) {
			w.after(before)
		}
		return !t.s.atLeast(Level4) || t.look()
	})
}

// after makes a want one for as much as the waiter before it needs.
func (w *want) after(before *Claim) {
	if needsMore(before, w.slots) {
		w.slots = before.Slots
	}
}

func needsMore(c *Claim, slots uint32) bool { return slots != 0 && (c.Slots == 0 || c.Slots > slots) }

// untangle lets all go on who can, and by that others. Each is looked at once for each
// that is in its way, however they are entangled.
func (t *tangle) untangle() {
	var goOn []*party
	t.parties.Scan(func(_ string, p *party) bool {
		for _, w := range p.wants {
			w.count(p)
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
		for _, h := range p.hinders {
			if other := h.want.party; h.end() && other.lacks == 0 {
				other.done = true
				goOn = append(goOn, other)
			}
		}
	}
}

// count notes who is in the way of a want, and whether that can be had all the same.
func (w *want) count(p *party) {
	w.party = p
	for _, b := range w.blockers {
		b.party.hinders = append(b.party.hinders, hindrance{w, b.slots, false})
		w.hindered(b.slots, false, 1)
	}
	for _, before := range w.ahead {
		before.hinders = append(before.hinders, hindrance{w, 0, true})
		w.hindered(0, true, 1)
	}
	if !w.canBeHad() {
		p.lacks++
	}
}

// hindered counts one more or one less that is in the way.
func (w *want) hindered(slots uint32, ahead bool, more int) {
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

// end takes a party out of the way of a want, and tells whether it can be had by that.
func (h hindrance) end() bool {
	if h.want.canBeHad() {
		h.want.hindered(h.slots, h.ahead, -1)
		return false
	}
	h.want.hindered(h.slots, h.ahead, -1)
	if !h.want.canBeHad() {
		return false
	}
	h.want.party.lacks--
	return true
}

// canBeHad tells whether there is room once all are gone who can go on.
func (w *want) canBeHad() bool {
	if w.before > 0 || w.blocked > 0 && (w.slots == 0 || w.whole > 0) {
		return false
	}
	return w.slots == 0 || w.room-w.taken >= int(w.slots)
}

// cycle finds the shortest way from a party that is stuck back to itself.
func (t *tangle) cycle(from *party) []leasehold.Wait {
	type step struct {
		party  *party
		before int
		wait   leasehold.Wait
	}
	steps := []step{{party: from, before: -1}}
	var seen btree.Map[string, bool]
	for i := 0; i < len(steps); i++ {
		p := steps[i].party
		for _, w := range p.wants {
			for _, next := range w.stuckOn() {
				made := step{next, i, leasehold.Wait{Holder: w.holder, Resource: w.path}}
				if next == from {
					return trace(made.wait, i, func(i int) (leasehold.Wait, int) { return steps[i].wait, steps[i].before })
				}
				if _, known := seen.Set(next.name, true); !known {
					steps = append(steps, made)
				}
			}
		}
	}
	return nil
}

// trace walks back from the last wait of a cycle to its first.
func trace(last leasehold.Wait, i int, at func(int) (leasehold.Wait, int)) []leasehold.Wait {
	cycle := []leasehold.Wait{last}
	for i > 0 {
		wait, before := at(i)
		cycle = append([]leasehold.Wait{wait}, cycle...)
		i = before
	}
	return cycle
}

// stuckOn returns the parties in the way that are stuck themselves.
func (w *want) stuckOn() (list []*party) {
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

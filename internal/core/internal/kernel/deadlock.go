package kernel

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/waitgraph"
	"github.com/leasehold/leasehold/internal/pattern"
)

// Parties that wait for each other in a cycle would wait until their leases end. The
// request that closes such a cycle is refused. Package waitgraph finds it; what follows here
// builds the graph, from the one who asks outwards.
//
// A party is who stands still while it waits: what the client says, else a session,
// else a holder. It does not wait for itself: two threads of one party may well want
// the same resource.
//
// Not looked for is what several threads of one party may do to each other: a waiter
// before another counts by the slots that it needs, and, if it wants several resources,
// until its party goes on; not by what else its party waits for elsewhere. A party that
// waits for one thing at a time is told of every cycle that it would close.

// maxLooked is how many leases and waiters are looked at. A cycle that is longer is not found;
// waits end anyway.
const maxLooked = 4096

// A graphBuilder finds who is in the way of a request, directly or not.
type graphBuilder struct {
	s      *look
	sp     *space
	graph  waitgraph.Graph
	asks   *waitgraph.Party
	claims []*Claim           // that it asks for, as they would wait
	unseen []*waitgraph.Party // of which it is not known yet what they wait for
	looked int
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

// deadlock refuses claims that would close a cycle if they waited.
func (l *look) deadlock(sp *space, claims []*Claim, priority int) *leasehold.Error {
	if sp.parties.Len() == 0 {
		return nil // those in the way wait for nothing
	}
	b := newGraphBuilder(l, sp, claims[0])
	for _, c := range claims {
		waiter := *c
		waiter.Wait = &Wait{Priority: priority, Order: sp.arrivals + 1}
		b.claims = append(b.claims, &waiter)
	}
	for _, c := range b.claims {
		b.want(b.asks, c)
	}
	if b.plain() || b.canGoOn() {
		return nil
	}
	cycle := b.graph.Cycle(b.asks)
	if cycle == nil {
		return nil // others are stuck, and would be without it
	}
	if !newGraphBuilder(l, sp, claims[0]).canGoOn() {
		return nil // it is stuck as it is: an operator may have moved a waiter
	}
	return l.cycleSeen(sp, cycle)
}

func newGraphBuilder(s *look, sp *space, asks *Claim) *graphBuilder {
	b := &graphBuilder{s: s, sp: sp}
	b.asks = b.party(asks)
	return b
}

// canGoOn builds the whole graph around the one who asks, and reports whether it can go on some
// day. If there is too much to look at it reports true: a wait that is refused by mistake is
// worse than a cycle that ends with a lease.
func (b *graphBuilder) canGoOn() bool {
	for len(b.unseen) > 0 && b.looked <= maxLooked {
		next := b.unseen[0]
		b.unseen = b.unseen[1:]
		b.wait(next)
	}
	if b.looked > maxLooked {
		return true
	}
	b.graph.Finish()
	return b.asks.CanGoOn()
}

// plain reports whether those in the way of the new claims wait for nothing, and nobody would
// be behind these. That is nearly always so, and is found out without a look at what else the
// one who asks waits for, which may be much.
func (b *graphBuilder) plain() (plain bool) {
	plain = true
	b.graph.Scan(func(p *waitgraph.Party) bool {
		if p != b.asks {
			name := b.nameAlone(p)
			b.sp.parties.Ascend(binding{session: name}, func(at binding) bool {
				plain = at.session != name
				return false
			})
		}
		return plain
	})
	for _, asked := range b.claims {
		b.sp.queue.Ascend(asked, func(behind *Claim) bool {
			plain = plain && behind.Resource != asked.Resource
			return false
		})
		plain = plain && !b.s.overlapsWaiters(b.sp, asked.Resource)
	}
	return plain
}

// party returns the party of a claim. One that is new in the graph has yet to be asked what it
// waits for.
func (b *graphBuilder) party(c *Claim) *waitgraph.Party {
	p, isNew := b.graph.Party(b.nameOf(c))
	if isNew {
		b.unseen = append(b.unseen, p)
	}
	return p
}

// nameOf returns how the graph calls the party of a claim. What a party is called is its own word: a client that takes
// the name of another's must not become that party, and make it look as if it waited for itself. So the name goes with
// the principal that was proven, if one was.
func (b *graphBuilder) nameOf(c *Claim) string {
	owner := b.sp.claimOwner(c.ID)
	if _, known := b.sp.claims.Get(c.ID); !known {
		owner = b.s.permit.Self() // it is asked for now
	}
	if owner == nil {
		return c.party() + ofWhom
	}
	return c.party() + ofWhom + owner.Principal
}

// ofWhom is between the name of a party and the principal.
const ofWhom = "\x00"

// nameAlone returns the name of a party without the principal, as sp.parties has it.
func (b *graphBuilder) nameAlone(p *waitgraph.Party) string {
	if i := strings.LastIndex(p.Name, ofWhom); i >= 0 {
		return p.Name[:i]
	}
	return p.Name
}

// wait finds what a party waits for.
func (b *graphBuilder) wait(p *waitgraph.Party) {
	var waiting []*Claim
	name := b.nameAlone(p)
	b.sp.parties.Ascend(binding{session: name}, func(at binding) bool {
		if at.session != name {
			return false
		}
		if c, _ := b.sp.claims.Get(at.id); !b.over(c) && b.nameOf(c) == p.Name {
			waiting = append(waiting, c)
		}
		return b.look()
	})
	for _, c := range waiting {
		if b.looked > maxLooked {
			return
		}
		b.want(p, c)
	}
}

// look counts what was looked at, and reports whether to go on.
func (b *graphBuilder) look() bool {
	b.looked++
	b.s.work.take(LookCost)
	return b.looked <= maxLooked
}

// over reports whether a claim is over at the stamp, collected or not: then it is in nobody's
// way.
func (b *graphBuilder) over(c *Claim) bool {
	_, _, over := b.s.isOver(b.sp, c)
	return over
}

// want finds who is in the way of a waiter.
func (b *graphBuilder) want(p *waitgraph.Party, c *Claim) {
	if c.OnTask() {
		return // a task may come from anybody, at any time
	}
	w := &waitgraph.Want{Holder: c.Holder, Resource: c.Resource, Slots: c.Slots}
	if b.sp.isPool(c.Resource) {
		// It may pass those before it, and a wait that is refused by mistake is worse than one that ends by its limit.
		b.blockedByHolders(p, c, w)
		p.Add(w)
		return
	}
	b.overlapping(p, c, w)
	b.afterOthers(p, c, w)
	b.blockedByHolders(p, c, w)
	b.afterJoint(p, c, w)
	for _, asked := range b.claims {
		if p == b.asks || asked.Resource != c.Resource || !b.sp.queue.Less(asked, c) {
			continue
		}
		w.Needs(asked.Slots) // it has a higher priority
		if len(b.claims) > 1 {
			w.After(b.asks)
		} else if waitgraph.NeedsMore(asked.Slots, c.Slots) {
			w.AfterLarger(b.asks)
		}
	}
	p.Add(w)
}

// overlapping finds the other parties that are in the way of a waiter for a path of an area by another name: who hold
// what overlaps it, and who wait for that with a place before.
func (b *graphBuilder) overlapping(p *waitgraph.Party, c *Claim, w *waitgraph.Want) {
	var others []*Resource
	looked := b.s.overlapping(b.sp, c.Resource, func(r *Resource) bool {
		others = append(others, r)
		return true
	})
	b.s.work.take(looked / LooksPerUnit)
	see := func(claim *Claim, blocks func(*waitgraph.Party)) bool {
		if !b.over(claim) {
			if other := b.party(claim); other != p && !b.abandoned(claim) {
				blocks(other)
			}
		}
		return b.look()
	}
	for _, r := range others {
		if r.Claim != "" || c.Slots == 0 {
			b.sp.holders(r, func(holder *Claim) bool {
				return see(holder, func(other *waitgraph.Party) { w.BlockedBy(other, 0) })
			})
		}
		b.sp.queue.Ascend(beforeAll(r.Path), func(before *Claim) bool {
			return before.Resource == r.Path && ComesBefore(before, c) && see(before, w.After)
		})
	}
	for _, asked := range b.claims {
		if p != b.asks && asked.Resource != c.Resource && b.overlap(asked, c) && ComesBefore(asked, c) {
			w.After(b.asks) // it has a higher priority
		}
	}
}

// overlap reports whether two claims are for names of areas that overlap.
func (b *graphBuilder) overlap(one, other *Claim) bool {
	return pattern.In(one.Resource) && pattern.In(other.Resource) && b.sp.areas.Overlap(one.Resource, other.Resource)
}

// blockedByHolders finds the other parties that have some of what a waiter wants.
func (b *graphBuilder) blockedByHolders(p *waitgraph.Party, c *Claim, w *waitgraph.Want) {
	r, ok := b.sp.resources.Get(c.Resource)
	if !ok {
		w.Room = leasehold.MaxCapacity // of a path in an area: else nobody would wait for it
		return
	}
	w.Room = b.sp.capacity(r.Path, r, b.sp.definition(r.Path))
	b.sp.holders(r, func(holder *Claim) bool {
		if b.over(holder) {
			return b.look()
		}
		if other := b.party(holder); other != p && !b.abandoned(holder) {
			w.BlockedBy(other, holder.Slots)
		}
		return b.look()
	})
}

// afterJoint finds the other parties before a waiter that want several resources at once.
func (b *graphBuilder) afterJoint(p *waitgraph.Party, c *Claim, w *waitgraph.Want) {
	b.sp.joint.Ascend(beforeAll(c.Resource), func(before *Claim) bool {
		if before.Resource != c.Resource || !b.sp.queue.Less(before, c) {
			return false
		}
		if b.over(before) {
			return b.look()
		}
		if other := b.party(before); other != p {
			w.After(other)
		}
		return b.look()
	})
}

// abandoned reports whether a lease may be of an earlier life of the one who asks: it has the
// same name and nothing but that name to be known by, asks for what it holds, and lets it end
// by time. Those who wait for such a lease do not wait for the one who asks.
func (b *graphBuilder) abandoned(c *Claim) bool {
	if c.Session != "" || c.terms().Party != "" || b.nameOf(c) != b.asks.Name ||
		b.s.deadlineOf(b.sp, c) == 0 {
		return false
	}
	return slices.ContainsFunc(b.claims, func(asked *Claim) bool { return asked.Resource == c.Resource })
}

// maxAhead is how many of those before a waiter are asked for how much they need.
const maxAhead = 256

// afterOthers finds how much must be free before it is a waiter's turn: those before it
// of other parties may need more than it does. One that needs all there is finds no larger
// need, however long the queue.
func (b *graphBuilder) afterOthers(p *waitgraph.Party, c *Claim, w *waitgraph.Want) {
	looked := 0
	b.sp.queue.Ascend(beforeAll(c.Resource), func(before *Claim) bool {
		looked++
		if w.Slots == 0 || looked > maxAhead || before.Resource != c.Resource || !b.sp.queue.Less(before, c) {
			return false
		}
		if b.nameOf(before) != p.Name && !b.over(before) {
			w.Needs(before.Slots)
		}
		return b.look()
	})
}

package kernel

import (
	"cmp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/pattern"
)

// The queue of a resource is a part of one tree for the whole namespace, ordered by resource,
// priority and arrival. Waiters are granted in that order and in no other; the first one that
// cannot be granted holds up those behind it.

// A wakeup is a resource of which something may be free, and whose queue has to be looked at.
type wakeup struct {
	space  *space
	path   string
	byTime bool       // nothing has changed but time
	area   *AreaQueue // what is in whose way, while an area is handed over; else nil
	from   string     // the waiter at which a chore goes on: see furtherLook
}

// A furtherLook is how far a hand-over has come with those who also wait elsewhere. What they wait for there may take
// as much work as an entry has, for each of them and in vain. An entry therefore looks at one of them at least, and at
// more while it has work left; the next entry goes on with the others. Until then these keep their places.
type furtherLook struct {
	from   *Claim // those before it were looked at; nil: nobody was
	begun  bool   // this entry has looked at one
	putOff bool   // the others are left to a chore
}

// newFurtherLook returns that of a hand-over.
func newFurtherLook(this wakeup) furtherLook {
	if from, ok := this.space.claims.Get(this.from); ok && from.Waiting() {
		return furtherLook{from: from}
	}
	return furtherLook{}
}

// reaches reports whether a waiter is looked at now, and else leaves it to a chore.
func (f *furtherLook) reaches(t *turn, this wakeup, waiter *Claim) bool {
	switch {
	case waiter.Wait.With == nil:
		return true
	case f.from != nil && CompareHeads(waiter, f.from) < 0:
		return false
	case f.begun && t.work.spent():
		if !f.putOff {
			f.putOff = true
			t.putOff(this.space, &Chore{Kind: HandOver, Name: this.path, Path: waiter.ID})
		}
		return false
	}
	f.begun = true
	return true
}

// leave puts off what is left of a hand-over, to begin anew if no chore knows where to go on.
func (f *furtherLook) leave(t *turn, this wakeup) {
	if !f.putOff {
		t.putOff(this.space, &Chore{Kind: HandOver, Name: this.path})
	}
}

// enqueue puts claims that are wanted together in the queues of their resources, each behind
// those of its priority. They share one place in the order of arrival: of two requests for the
// same resources the same one is first everywhere, so neither can hold a part that the other
// waits for.
func (t *turn) enqueue(sp *space, claims []*Claim, until Time, priority int) {
	sp.arrivals++
	var with []string
	if len(claims) > 1 {
		for _, c := range claims {
			with = append(with, c.ID)
		}
	}
	for _, c := range claims {
		c.Wait = &Wait{Until: until, Priority: priority, Order: sp.arrivals, With: with}
		// A waiter needs somebody who still wants it. Without a session, the waiter itself must
		// be renewed, or the resource would one day be granted to a client that is long gone.
		if c.Session == "" {
			c.Expires = t.now.Add(waiterTTL)
		}
		c.Revision = t.revise(sp)
		t.lengthen(sp, c)
		t.put(sp, c)
		event := t.event(sp, c, leasehold.Queued)
		event.Reason, event.Until = c.terms().Reason, t.moment(until)
		t.emit(sp, event)
		t.lengthened(sp, c.Resource)
	}
}

// lengthen counts one more waiter on a resource.
func (t *turn) lengthen(sp *space, c *Claim) {
	longer := Resource{Path: c.Resource}
	if r, ok := sp.resources.Get(c.Resource); ok {
		longer = *r
	}
	longer.Waiting++
	sp.queueChanged(c.Resource)
	t.setResource(sp, &longer)
}

// together returns the waiters that are granted only together with one, including itself, in
// the order in which they were asked for.
func (s *State) together(sp *space, c *Claim) []*Claim {
	if c.Wait.With == nil {
		return []*Claim{c}
	}
	list := make([]*Claim, 0, len(c.Wait.With))
	for _, id := range c.Wait.With {
		other, _ := sp.claims.Get(id)
		list = append(list, other)
	}
	return list
}

// stillWanted takes a sign of life from a waiter that has no session. All waiters of its
// request are extended, since they are granted or dropped as one.
func (t *turn) stillWanted(sp *space, claim *Claim) *Claim {
	if claim.Session != "" {
		return claim
	}
	for _, c := range t.together(sp, claim) {
		waiter := *c
		waiter.Expires = t.now.Add(waiterTTL)
		t.put(sp, &waiter)
	}
	waiter, _ := sp.claims.Get(claim.ID)
	return waiter
}

// wakeQueue grants what is free of a resource to those who wait for it. A grant can free or block
// other resources, which are then woken in turn; all of it is done before the outermost call
// returns. It is a loop and not a recursion, because one end can set off a chain as long as
// there are resources.
func (t *turn) wakeQueue(sp *space, path string) { t.wake(wakeup{space: sp, path: path}) }

// wake does so, if something has changed or time has passed.
func (t *turn) wake(this wakeup) {
	this.space.queueChanged(this.path)
	if n := len(t.woken); n > 0 && t.woken[n-1] == this {
		return // it is being handed over, or will be next
	}
	if t.woken = append(t.woken, this); len(t.woken) > 1 {
		return // the call that woke the first goes on with this one
	}
	for i := 0; i < len(t.woken); i++ {
		t.handOver(t.woken[i])
	}
	t.woken = t.woken[:0]
}

// handOver grants what is free of a resource to its first waiters that are still alive. A first
// waiter that needs more than is free, or another resource that it cannot have yet, holds up
// those behind it: else they could keep it waiting forever. Waiters before it that are no
// longer alive leave the queue here; the rest of what their sessions had ends when those are
// settled. In a quarantine nothing is granted. What is too much for the entry becomes a chore.
func (t *turn) handOver(this wakeup) {
	sp, path := this.space, this.path
	if sp.isPool(path) {
		t.handOverUnits(this)
		return
	}
	if sp.waitsForTasks(path) {
		t.handOverTasks(sp, path)
		return
	}
	if sp.tasks.Get(path) != nil {
		defer t.offerTask(sp, path)
	}
	if pattern.In(path) {
		t.handOverArea(this)
		return
	}
	for !t.quarantined() {
		r, ok := sp.resources.Get(path)
		if !ok || r.Claim != "" || r.Waiting == 0 {
			return
		}
		if _, all := r.Rests(t.now); all {
			return
		}
		if !t.serve(this, first(sp, path)) {
			return
		}
	}
}

// serve grants to the first waiter of a resource, or lets it leave if it is gone, while the queue of this one moves on.
// It reports whether it did; if not, the waiter stays where it is, or there is no work left in the entry.
func (t *turn) serve(this wakeup, waiter *Claim) bool {
	sp := this.space
	how, gone := t.mustLeave(sp, waiter)
	together := t.together(sp, waiter)
	spent := t.work.spent() && (this.area == nil || this.area.moved)
	if !gone && t.hopeless(sp, together) {
		how, gone = leasehold.NoSlots, true
	}
	switch {
	case !gone && (waiter.Early() || !t.haveTurn(this, together)):
		return false
	// Only after turn, so that a chore is left only where there is something to do. But what turn itself took does not
	// count, nor what it took for those before in an area of whom nobody moved: it may be more than a whole entry has,
	// and the chore would then come to the same for ever.
	case spent:
		var look furtherLook // a plain queue has one waiter to look at, its first
		if this.area != nil {
			this.area.ends, look = true, this.area.look
		}
		look.leave(t, this)
		return false
	case gone:
		t.leave(sp, t.dismissed(waiter, how), how)
		return true
	}
	t.grantWaiting(this, together)
	return true
}

// grantWaiting grants to waiters whose turn it is, in this queue and in others.
func (t *turn) grantWaiting(this wakeup, together []*Claim) {
	sp := this.space
	for _, c := range together {
		t.dequeue(sp, c)
		r, _ := sp.resources.Get(c.Resource)
		taken := *r
		taken.Waiting--
		t.grant(sp, taken, c)
		t.shortened(sp, c.Resource)
	}
	// Only now, when the whole request has its leases, may the other queues move on.
	for _, c := range together {
		if c.Resource != this.path {
			t.wakeQueue(sp, c.Resource)
		}
	}
}

// hopeless reports whether waiters need more slots of a resource than it has: a definition may
// have changed since they came. They can never be granted, and would hold up everybody behind
// them.
func (s *State) hopeless(sp *space, together []*Claim) bool {
	if sp.mayAskTogether(together) != nil {
		return true
	}
	for _, c := range together {
		if c.terms().Select != nil && !sp.isPool(c.Resource) {
			return true // the pool that it selects from has gone
		}
		r, _ := sp.resources.Get(c.Resource)
		if capacity := sp.capacity(c.Resource, r, sp.definition(c.Resource)); capacity != 0 && int(c.Slots) > capacity {
			return true
		}
	}
	return false
}

// haveTurn reports whether waiters are first in all their queues, and there is room for each.
func (t *turn) haveTurn(this wakeup, together []*Claim) bool {
	sp := this.space
	pools := poolsAmong(sp, together)
	for _, c := range together {
		r, _ := sp.resources.Get(c.Resource)
		if sp.isPart(c.Resource, c.Slots) {
			if !t.turnInPool(this, c, pools) {
				return false
			}
			continue
		}
		if first(sp, c.Resource) != c || !t.fits(sp, r, c.Slots, leasehold.MaxCapacity) || t.overlapped(this, c) {
			return false
		}
	}
	return true
}

// mustLeave reports whether a waiter may no longer be granted at the stamp, and why. It asks at the
// very moment of the grant: a lease for a client that is gone would be in everybody's way until
// it expires.
func (s *State) mustLeave(sp *space, waiter *Claim) (leasehold.How, bool) {
	_, how, over := s.isOver(sp, waiter)
	if at, own := waiter.End(); sp.left(waiter.Session) != nil && at != 0 && at <= s.now {
		return own, true // a wait that is over by now is told as that
	}
	if over || waiter.Session == "" {
		return how, over
	}
	if _, ok := sp.sessions.Get(waiter.Session); ok {
		return 0, false
	}
	// Its session is ending right now, in this very command.
	ended, _ := sp.endedSessions.Get(waiter.Session)
	return ended.How, true
}

// first returns the first waiter of a resource; nil if there is none.
func first(sp *space, path string) *Claim {
	if waiter := firstFrom(sp, path); waiter != nil && waiter.Resource == path {
		return waiter
	}
	return nil
}

// firstFrom returns the first waiter of the first resource that has one, from a path on.
func firstFrom(sp *space, path string) (waiter *Claim) {
	sp.queue.Ascend(beforeAll(path), func(c *Claim) bool {
		waiter = c
		return false
	})
	return waiter
}

// nextWaiting returns the waiter of a resource that comes behind another; nil if there is none.
func nextWaiting(sp *space, path string, after *Claim) (next *Claim) {
	sp.queue.Ascend(after, func(c *Claim) bool {
		if c == after {
			return true
		}
		if c.Resource == path {
			next = c
		}
		return false
	})
	return next
}

// beforeAll returns a claim that sorts before every waiter of a resource.
func beforeAll(path string) *Claim { return &Claim{Resource: path, Wait: firstPlace} }

var firstPlace = &Wait{Priority: ReservedPriority}

// position returns the place of a waiter, 1 for the next; the one furthest back if it waits in
// several queues. It is the difference of two ranks in the tree, found by halving, so a long
// queue costs hardly more than a short one.
func (l *look) position(sp *space, waiter *Claim) (place int) {
	for _, c := range l.together(sp, waiter) {
		place = max(place, rank(sp, c)-rank(sp, beforeAll(c.Resource))+1+l.overlappingAhead(sp, c, l.work))
	}
	return place
}

// waiterAt returns the waiter at a place of a queue, 1 for the next; nil if there is none.
func waiterAt(sp *space, path string, position int) *Claim {
	c, ok := sp.queue.GetAt(rank(sp, beforeAll(path)) + position - 1)
	if position == 0 || !ok || c.Resource != path {
		return nil
	}
	return c
}

// rank counts the waiters of a namespace that come before c.
func rank(sp *space, c *Claim) int {
	low, high := 0, sp.queue.Len()
	for low < high {
		middle := (low + high) / 2
		if at, _ := sp.queue.GetAt(middle); sp.queue.Less(at, c) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// ComesBefore reports whether a waiter comes before another one, each in the queue of its resource.
func ComesBefore(a, b *Claim) bool { return compareWaits(a, b) < 0 }

func compareWaits(a, b *Claim) int {
	return cmp.Or(cmp.Compare(b.Wait.Priority, a.Wait.Priority), cmp.Compare(a.Wait.Order, b.Wait.Order))
}

// CompareHeads orders the first waiters of several names. Those of one request have the same place.
func CompareHeads(a, b *Claim) int {
	return cmp.Or(compareWaits(a, b), cmp.Compare(a.Resource, b.Resource))
}

func newQueue() *btree.Tree[*Claim] {
	return btree.New(func(a, b *Claim) bool {
		switch {
		case a.Resource != b.Resource:
			return a.Resource < b.Resource
		case a.Wait.Priority != b.Wait.Priority:
			return a.Wait.Priority > b.Wait.Priority
		}
		return a.Wait.Order < b.Wait.Order
	})
}

package kernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// The queue of a pool. A unit that is free is for the first waiter that could use it, and is kept for it even if it
// needs more: a waiter is passed by those behind it that get only what it could not use, and while it is over a limit
// of its own. Package pool says what "could use" means.

// maxLine is how many waiters of a pool are looked at. Those behind them are granted when they have come so far.
const maxLine = 4096

// A line is the waiters of a pool as far as somebody looked, and what they leave to the next.
type line struct {
	s       *look
	sp      *space
	path    string
	units   *pool.Line
	limits  []leasehold.UnitLimit
	used    []pool.Counts // units, by what each of the limits counts together; nil: not counted yet
	counted int           // comparisons of leases and waiters with limits
	grants  int           // so far
	moved   bool          // somebody was granted something, or left
	lent    int           // how many were asked whether they would borrow something
	borrows bool          // somebody did
	picks   *turn         // that gets the units of those who are granted; nil: somebody only reads
	look    furtherLook   // at those who also wait elsewhere, in a hand-over
}

// newLine returns a line in which nobody stands yet. It reads the limits and the rests once: nothing that changes
// either happens while somebody looks at the queue.
func (l *look) newLine(sp *space, path string, still bool) *line {
	var resting btree.Set[string]
	if r, ok := sp.resources.Get(path); ok {
		resting = restingUnits(r.more().resting(l.now))
	}
	l.addReservedUnits(sp, path, &resting)
	d := sp.definition(path)
	made := &line{s: l, sp: sp, path: path, units: pool.NewLine(&sp.pools, path, resting), limits: d.Limits}
	if d.Backfill && !still && sp.hasKinds(path) && sp.pools.Size(path).Units <= maxSeats {
		made.units.Lend(made.begins)
	}
	return made
}

// asks returns what a claim asks for of a pool.
func (c *Claim) asks() *pool.Ask {
	if c.Terms != nil && c.Terms.ask != nil {
		return c.Terms.ask
	}
	return &pool.Ask{N: int(c.Slots), All: c.Slots == 0}
}

// CompileAsk makes an ask of what a request selects. The text was checked before.
func CompileAsk(slots int, sel *leasehold.Select, labels leasehold.Labels) (*pool.Ask, error) {
	where, err := pool.ParseSelector(sel.Where)
	if err != nil {
		return nil, err
	}
	ask := &pool.Ask{N: slots, Where: where, Spread: sel.Spread, Units: sel.Units,
		Sorted: slices.Sorted(slices.Values(sel.Units)), Adopts: pool.Adopted(labels)}
	return ask.Sum(), nil
}

// A verdict is what becomes of the next in a line.
type verdict struct {
	grant bool // it can have what it asks for
	skip  bool // it waits, and nothing is kept for it: it is over a limit of its own
	never bool // it can never have it
	why   func() string
}

// judge decides about the next in the line. If it is to be granted, its units are picked.
func (l *line) judge(c *Claim) verdict {
	ask := c.asks()
	if _, all := l.s.reservedSlots(l.sp, l.path); all {
		l.units.Keep(&pool.Ask{All: true})
		return verdict{why: func() string { return "waits for the end of a reservation" }}
	}
	if limit, has := l.over(c); limit != nil {
		// A limit below what it asks for is one that it never meets.
		return verdict{skip: true, never: limit.Most < int(c.Slots),
			why: func() string { return l.overLimit(c, limit, has) }}
	}
	if ask.All {
		r, _ := l.sp.resources.Get(l.path)
		if l.units.Empty() && l.s.fits(l.sp, r, 0, 0) {
			return verdict{grant: true}
		}
		l.units.Keep(ask)
		return verdict{why: func() string { return "needs all units, and waits until nobody has any" }}
	}
	if units := l.units.Pick(ask, c.Holder); units != nil {
		if l.picks != nil {
			l.picks.pick(c.ID, units, false)
		}
		return verdict{grant: true}
	}
	if l.backfills(c, ask) {
		return verdict{grant: true}
	}
	if l.units.Repeats(ask) {
		return verdict{why: func() string { return "waits behind others that ask for the same" }}
	}
	return l.keep(ask)
}

// keep lets a request that gets nothing stand in the line.
func (l *line) keep(ask *pool.Ask) verdict {
	first := l.units.Empty()
	if now, ever := l.units.Keep(ask); !now {
		return verdict{never: !ever, why: func() string {
			if !ever {
				return l.sp.neverEnough(l.path, ask, l.units.Most(ask))
			}
			return "waits for " + wanted(ask) + cmp.Or(l.obstacle(ask), ": there are units, but drained, unfit or "+
				"taken without a lease")
		}}
	}
	return verdict{why: func() string {
		host, free, fixed := l.units.Kept()
		if first && fixed && host != "" {
			return fmt.Sprintf("is first: units on host %s are kept for it, %d of %d free", host, free, ask.N)
		}
		return "waits for " + wanted(ask)
	}}
}

// granted counts what somebody in the line has got.
func (l *line) granted(c *Claim) {
	l.grants++
	if l.used != nil {
		l.count(c)
	}
}

// over returns the first limit that a claim would exceed, and how much of it is used; nil if there is none.
func (l *line) over(c *Claim) (*leasehold.UnitLimit, int) {
	if len(l.limits) == 0 || c.Slots == 0 {
		return nil, 0
	}
	if l.used == nil {
		l.countAll()
	}
	for i := range l.limits {
		if key, counts := countedBy(&l.limits[i], c); counts {
			if has := l.used[i].Of(key); has+int(c.Slots) > l.limits[i].Most {
				return &l.limits[i], has
			}
		}
	}
	return nil, 0
}

// countAll counts what all holders have.
func (l *line) countAll() {
	l.used = make([]pool.Counts, len(l.limits))
	if r, ok := l.sp.resources.Get(l.path); ok {
		l.sp.holders(r, func(held *Claim) bool {
			l.count(held)
			return true
		})
	}
}

// count adds the units of a lease to what its holder and its groups have, as far as a limit counts them: without
// limits nothing is counted.
func (l *line) count(c *Claim) {
	l.counted += findsLease + len(l.limits)
	for i := range l.limits {
		if key, counts := countedBy(&l.limits[i], c); counts {
			l.used[i].Add(key, int(c.Slots))
		}
	}
}

// countedBy returns what a limit counts a claim with, and whether it counts it.
func countedBy(limit *leasehold.UnitLimit, c *Claim) (key string, counts bool) {
	switch limit.By {
	case leasehold.EachPrefix:
		return "", strings.HasPrefix(c.Holder, limit.Name)
	case leasehold.EachValue:
		if c.Terms == nil {
			return "", false
		}
		for i := range c.Terms.Labels {
			if label := &c.Terms.Labels[i]; label.Key == limit.Name {
				return label.Value, true
			}
		}
		return "", false
	}
	return c.Holder, true
}

// lookAgain looks at the queue of a pool again when a lease is new or counts for somebody else: somebody may be below
// a limit now, or above one, which frees what was kept for it; and who went before the first in the queue may have left
// it so little on one host that units are kept for it on another.
func (t *turn) lookAgain(sp *space, c *Claim) {
	if !sp.pools.Has(c.Resource) {
		return
	}
	if r, ok := sp.resources.Get(c.Resource); ok && r.Waiting > 0 {
		t.work.take(t.poolCost(sp, c.Resource))
		t.wakeQueue(sp, c.Resource)
	}
}

// mayGive refuses a change of holder: it is a grant to somebody else, and in a quarantine nothing is granted, nor are
// units above a limit.
func (l *look) mayGive(sp *space, c *Claim, change *Change) *leasehold.Error {
	if l.quarantined() {
		return l.notGiven(change).Err
	}
	if !sp.isPart(c.Resource, c.Slots) {
		return nil
	}
	given := *c
	given.Holder = change.Holder
	made := l.newLine(sp, c.Resource, false)
	made.limits = slices.DeleteFunc(slices.Clone(made.limits), func(limit leasehold.UnitLimit) bool {
		before, _ := countedBy(&limit, c)
		after, counts := countedBy(&limit, &given)
		if limit.By == leasehold.EachPrefix {
			return !counts || strings.HasPrefix(c.Holder, limit.Name) // it is counted there already
		}
		return !counts || before == after
	})
	limit, has := made.over(&given)
	l.work.take(made.cost())
	if limit == nil {
		return nil
	}
	return refuse(leasehold.Limited, "%s: this change %s", c.Resource, made.overLimit(&given, limit, has)).Err
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

// handOverUnits grants what is free of a pool to its waiters, as handOver does for other resources. Where there are
// limits, a grant may put an earlier waiter of the same holder over its own, so that nothing is kept for it any longer;
// and what is borrowed may be missing on the host where units are kept for the first one, so that they are kept on
// another. Then all are looked at again.
func (t *turn) handOverUnits(this wakeup) {
	sp, path := this.space, this.path
	if r, ok := sp.resources.Get(path); !ok || r.Waiting == 0 {
		return
	}
	for {
		if t.work.spent() {
			t.putOff(sp, &Chore{Kind: HandOver, Name: path})
			return
		}
		l := t.newLine(sp, path, this.byTime)
		l.picks, l.look = t, newFurtherLook(this)
		n := t.handOverLine(this, l)
		t.work.take(n/waitersPerWork + l.cost())
		if l.look.putOff || l.grants == 0 || len(l.limits) == 0 && !l.borrows && !l.units.Tired() {
			return
		}
	}
}

// How many waiters, and units and hosts, are looked at in a unit of work; and how many times a lease is compared with a
// limit. To find a lease takes as long as some comparisons.
const (
	waitersPerWork = 2
	unitsLooked    = 64
	comparisons    = 32
	findsLease     = 4
)

// cost is what it took to look at the units and at the limits.
func (l *line) cost() int { return l.units.Looked/unitsLooked + l.counted/comparisons }

// handOverLine goes through the waiters once, in their order. If nothing is left to do, it notes until when that stays
// so: until the first of those who were looked at is over, or a rest is. It returns how many waiters it looked at.
func (t *turn) handOverLine(this wakeup, l *line) (n int) {
	sp, path := this.space, this.path
	calm := Time(math.MaxInt64)
	after := beforeAll(path)
	for ; n < maxLine && !l.units.Full(); n++ {
		r, ok := sp.resources.Get(path)
		if !ok || r.Claim != "" || r.Waiting == 0 || t.quarantined() {
			return n
		}
		if at := r.resumes(); at != 0 {
			calm = min(calm, at)
		}
		waiter := nextWaiting(sp, path, after)
		if waiter == nil {
			break
		}
		after = waiter
		if at := t.deadlineOf(sp, waiter); at != 0 {
			calm = min(calm, at)
		}
		if !t.handUnits(this, l, waiter) {
			return n
		}
	}
	if !l.look.putOff {
		sp.quiet.Set(path, calm)
	}
	return n
}

// handUnits grants to one waiter of a pool, lets it leave or lets it wait. It reports whether there is work left in the
// entry to go on.
func (t *turn) handUnits(this wakeup, l *line, waiter *Claim) bool {
	sp := this.space
	how, gone := t.mustLeave(sp, waiter)
	ready, spent := false, t.work.spent() && l.moved
	if !gone && waiter.Early() {
		return true
	}
	if !gone {
		v := l.judge(waiter)
		if v.never || sp.mayAskTogether(t.together(sp, waiter)) != nil {
			how, gone = leasehold.NoSlots, true
		}
		ready = v.grant && l.look.reaches(t, this, waiter) && t.turnElsewhere(this, waiter)
		if v.grant && !ready {
			l.keep(waiter.asks())
		}
	}
	switch {
	case !gone && !ready:
		return true
	case spent: // before it was this one's turn, and not by looking alone: see serve
		l.look.leave(t, this)
		return false
	}
	l.moved = true
	if gone {
		t.leave(sp, t.dismissed(waiter, how), how)
		return true
	}
	t.grantWaiting(this, t.together(sp, waiter))
	l.granted(waiter)
	return true
}

// turnElsewhere reports whether a waiter of a pool can have what else it waits for at the same time.
func (t *turn) turnElsewhere(this wakeup, waiter *Claim) bool {
	others := slices.Clone(t.together(this.space, waiter))
	return t.haveTurn(this, slices.DeleteFunc(others, func(c *Claim) bool { return c == waiter }))
}

// isPart reports whether a claim is on units of a pool, and not on all of it.
func (sp *space) isPart(path string, slots uint32) bool { return slots != 0 && sp.pools.Has(path) }

// turnInPool reports whether a waiter can have its units of a pool now, and picks them. pools is how many pools it
// waits for.
func (t *turn) turnInPool(this wakeup, waiter *Claim, pools int) bool {
	sp := this.space
	r, ok := sp.resources.Get(waiter.Resource)
	if !ok || r.Claim != "" || waiter.Early() {
		return false
	}
	l := t.lineBefore(sp, waiter.Resource, pools, this.byTime, func(c *Claim) bool { return c != waiter })
	l.picks = t
	v := l.judge(waiter)
	t.work.take(l.cost())
	return v.grant
}

// lineBefore returns the part of a pool's line that is ahead of a request. A request for units of several pools looks
// at no more in all of them than it would in one, and waits if more than its share is ahead of it in any of them.
func (l *look) lineBefore(sp *space, path string, pools int, still bool, before func(*Claim) bool) *line {
	made := l.newLine(sp, path, still)
	made.units.Share(pools)
	n := 0
	sp.queue.Ascend(beforeAll(path), func(c *Claim) bool {
		if c.Resource != path || made.units.Full() || !before(c) {
			return false
		}
		if n++; n == maxLine/pools { // the request itself counts
			made.units.Stop()
			return false
		}
		made.counted += findsLease + len(made.limits)
		if _, gone := l.mustLeave(sp, c); gone {
			return true
		}
		if limit, _ := made.over(c); limit == nil {
			made.units.Keep(c.asks())
		}
		return true
	})
	return made
}

// openUnits picks units of a pool for a new request, or says why it cannot have them. pools is how many pools the
// request asks for.
func (t *turn) openUnits(sp *space, r *Resource, claim *Claim, pools, priority int) obstacle {
	t.work.take(t.poolCost(sp, r.Path))
	if t.quarantined() || r.Claim != "" || priority == EarlyPriority {
		return obstacle{at: r}
	}
	if _, all := r.Rests(t.now); all {
		return obstacle{at: r}
	}
	l := t.lineBefore(sp, r.Path, pools, false, func(c *Claim) bool {
		return c.Wait.Priority >= priority
	})
	l.picks = t
	defer func() { t.work.take(l.cost()) }() // to say why takes looks, too
	v := l.judge(claim)
	switch {
	case v.grant:
		return obstacle{}
	case v.skip || v.never:
		return obstacle{at: r, units: v.why(), ownLimit: v.skip, forever: v.never}
	}
	return obstacle{at: r, units: "needs " + wanted(claim.asks()) + l.obstacle(claim.asks())}
}

// isQuiet reports whether nobody in the queue of a pool can have been granted anything, or have gone, since somebody
// looked last. A waiter shows every few seconds that it is alive, and would else have the whole queue looked at.
func (s *State) isQuiet(sp *space, path string) bool {
	if sp.quiet.Len() == 0 || s.withdrawal != nil || sp.leaving() {
		return false
	}
	until, ok := sp.quiet.Get(path)
	return ok && s.now < until
}

// queueChanged says that the queue of a pool has to be looked at again.
func (sp *space) queueChanged(path string) {
	if sp.quiet.Len() > 0 {
		sp.quiet.Delete(path)
	}
}

package unit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// The queue of a pool. A unit that is free is for the first waiter that could use it, and is kept for it even if it
// needs more: a waiter is passed by those behind it that get only what it could not use, and while it is over a limit
// of its own. Package pool says what "could use" means.

// maxLine is how many waiters of a pool are looked at. Those behind them are granted when they have come so far.
const maxLine = 4096

// A line is the waiters of a pool as far as somebody looked, and what they leave to the next.
type line struct {
	kernel.Look
	pools   *pools
	path    string
	units   *pool.Line
	limits  []leasehold.UnitLimit
	used    []pool.Counts // units, by what each of the limits counts together; nil: not counted yet
	counted int           // comparisons of leases and waiters with limits
	lent    int           // how many were asked whether they would borrow something
	borrows bool          // somebody did
	picks   *kernel.Turn  // by which units are picked; nil: somebody only reads

	// Of a hand-over.

	grants int  // so far
	moved  bool // somebody was granted something, or left
}

// newLine returns a line in which nobody stands yet. It reads the limits and the rests once: nothing that changes
// either happens while somebody looks at the queue. byTime says that nothing has changed but time.
func (p *pools) newLine(l kernel.Look, path string, byTime bool) *line {
	resting := l.Resting(path)
	l.KeptUnits(path, &resting)
	d := l.Definition(path)
	made := &line{Look: l, pools: p, path: path, units: pool.NewLine(&p.units, path, resting), limits: d.Limits}
	if d.Backfill && !byTime && l.HasKinds(path) && p.Size(path) <= maxLentUnits {
		made.units.Lend(made.begins)
	}
	return made
}

// A verdict is what becomes of the next in a line.
type verdict struct {
	grant bool // it can have what it asks for
	skip  bool // it waits, and nothing is kept for it: it is over a limit of its own
	never bool // it can never have it
	why   func() string
}

// judge decides about the next in the line. If it is to be granted, its units are picked.
func (l *line) judge(c *kernel.Claim) verdict {
	ask := c.Asks()
	if l.KeptWhole(l.path) {
		l.units.Keep(&pool.Ask{All: true})
		return verdict{why: func() string { return "waits for the end of a reservation" }}
	}
	if limit, has := l.exceeded(c); limit != nil {
		// A limit below what it asks for is one that it never meets.
		return verdict{skip: true, never: limit.Most < int(c.Slots),
			why: func() string { return limitText(c, limit, has) }}
	}
	if ask.All {
		if l.units.Empty() && l.FitsWhole(l.Resource(l.path)) {
			return verdict{grant: true}
		}
		l.units.Keep(ask)
		return verdict{why: func() string { return "needs all units, and waits until nobody has any" }}
	}
	if units := l.units.Pick(ask, c.Holder); units != nil {
		if l.picks != nil {
			l.picks.Pick(c.ID, units, false)
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
				return l.pools.NeverEnough(l.path, ask, l.units.Most(ask))
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
func (l *line) granted(c *kernel.Claim) {
	l.grants++
	if l.used != nil {
		l.count(c)
	}
}

// exceeded returns the first limit that a claim would exceed, and how much of it is used; nil if there is none.
func (l *line) exceeded(c *kernel.Claim) (*leasehold.UnitLimit, int) {
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
	if r := l.Resource(l.path); r != nil {
		l.Holders(r, func(held *kernel.Claim) bool {
			l.count(held)
			return true
		})
	}
}

// count adds the units of a lease to what its holder and its groups have, as far as a limit counts them: without
// limits nothing is counted.
func (l *line) count(c *kernel.Claim) {
	l.counted += findsLease + len(l.limits)
	for i := range l.limits {
		if key, counts := countedBy(&l.limits[i], c); counts {
			l.used[i].Add(key, int(c.Slots))
		}
	}
}

// countedBy returns what a limit counts a claim with, and whether it counts it.
func countedBy(limit *leasehold.UnitLimit, c *kernel.Claim) (key string, counts bool) {
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

// OverLimit returns a function that reports whether a waiter of a resource waits because of a limit of its own.
func (p *pools) OverLimit(l kernel.Look, path string) func(c *kernel.Claim) bool {
	made := p.newLine(l, path, false)
	return func(c *kernel.Claim) bool {
		limit, _ := made.exceeded(c)
		return limit != nil
	}
}

// MayGive refuses another holder who would have more units than a limit allows.
func (p *pools) MayGive(l kernel.Look, c *kernel.Claim, holder string) *leasehold.Error {
	given := *c
	given.Holder = holder
	made := p.newLine(l, c.Resource, false)
	made.limits = slices.DeleteFunc(slices.Clone(made.limits), func(limit leasehold.UnitLimit) bool {
		before, _ := countedBy(&limit, c)
		after, counts := countedBy(&limit, &given)
		if limit.By == leasehold.EachPrefix {
			return !counts || strings.HasPrefix(c.Holder, limit.Name) // it is counted there already
		}
		return !counts || before == after
	})
	limit, has := made.exceeded(&given)
	l.Take(made.cost())
	if limit == nil {
		return nil
	}
	return refuse(leasehold.Limited, "%s: this change %s", c.Resource, limitText(&given, limit, has)).Err
}

// HandOver grants what is free of a pool to its waiters. Where there are limits, a grant may put an earlier waiter of
// the same holder over its own, so that nothing is kept for it any longer; and what is borrowed may be missing on the
// host where units are kept for the first one, so that they are kept on another. Then all are looked at again.
func (p *pools) HandOver(q *kernel.PoolQueue, path string) {
	for {
		if q.Spent() {
			q.PutOff()
			return
		}
		q.Begin()
		l := p.newLine(q.Look(), path, q.ByTime())
		l.picks = &q.Turn
		n := l.handOver(q)
		q.Take(n/waitersPerWork + l.cost())
		if q.IsPutOff() || l.grants == 0 || len(l.limits) == 0 && !l.borrows && !l.units.Tired() {
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

// handOver goes through the waiters once, in their order. If nothing is left to do, it notes until when that stays so:
// until the first of those who were looked at is over, or a rest is. It returns how many waiters it looked at.
func (l *line) handOver(q *kernel.PoolQueue) (n int) {
	quiet := kernel.Time(math.MaxInt64)
	var after *kernel.Claim
	for ; n < maxLine && !l.units.Full(); n++ {
		r := q.Resource(l.path)
		if r == nil || r.Claim != "" || r.Waiting == 0 || q.Quarantined() {
			return n
		}
		if at := q.Resumes(r); at != 0 {
			quiet = min(quiet, at)
		}
		waiter := q.NextWaiting(l.path, after)
		if waiter == nil {
			break
		}
		after = waiter
		if at := q.DeadlineOf(waiter); at != 0 {
			quiet = min(quiet, at)
		}
		if !l.handUnits(q, waiter) {
			return n
		}
	}
	if !q.IsPutOff() && l.pools.Has(l.path) { // what was granted may have ended the last lease on one of its units
		l.pools.quiet.Set(l.path, quiet)
	}
	return n
}

// handUnits grants to one waiter of a pool, lets it leave or lets it wait. It reports whether there is work left in the
// entry to go on.
func (l *line) handUnits(q *kernel.PoolQueue, waiter *kernel.Claim) bool {
	how, gone := q.Gone(waiter)
	ready, spent := false, q.Spent() && l.moved
	if !gone && waiter.Early() {
		return true
	}
	if !gone {
		v := l.judge(waiter)
		if v.never || q.Hopeless(waiter) {
			how, gone = leasehold.NoSlots, true
		}
		ready = v.grant && q.HasTurn(waiter)
		if v.grant && !ready {
			l.keep(waiter.Asks())
		}
	}
	switch {
	case !gone && !ready:
		return true
	case spent: // before it was this one's turn, and not by looking alone
		q.PutOff()
		return false
	}
	l.moved = true
	if gone {
		q.Dismiss(waiter, how)
		return true
	}
	q.Grant(waiter)
	l.granted(waiter)
	return true
}

// HasTurn reports whether a waiter can have its units of a pool now, and picks them.
func (p *pools) HasTurn(t kernel.Turn, waiter *kernel.Claim, pools int, byTime bool) bool {
	l := p.lineBefore(t.Look(), waiter.Resource, pools, byTime, func(c *kernel.Claim) bool { return c != waiter })
	l.picks = &t
	v := l.judge(waiter)
	t.Take(l.cost())
	return v.grant
}

// Fits reports whether a waiter could have units of a pool. That time alone makes somebody a borrower is not looked
// for.
func (p *pools) Fits(l kernel.Look, waiter *kernel.Claim, pools int) bool {
	ahead := p.lineBefore(l, waiter.Resource, pools, false, func(c *kernel.Claim) bool { return c != waiter })
	return ahead.judge(waiter).grant
}

// lineBefore returns the part of a pool's line that is ahead of a request. A request for units of several pools looks
// at no more in all of them than it would in one, and waits if more than its share is ahead of it in any of them.
func (p *pools) lineBefore(
	l kernel.Look, path string, pools int, byTime bool, before func(*kernel.Claim) bool,
) *line {
	made := p.newLine(l, path, byTime)
	made.units.Share(pools)
	n := 0
	l.Waiters(path, func(c *kernel.Claim) bool {
		if made.units.Full() || !before(c) {
			return false
		}
		if n++; n == maxLine/pools { // the request itself counts
			made.units.Stop()
			return false
		}
		made.counted += findsLease + len(made.limits)
		if l.MustLeave(c) {
			return true
		}
		if limit, _ := made.exceeded(c); limit == nil {
			made.units.Keep(c.Asks())
		}
		return true
	})
	return made
}

// Open picks units of a pool for a new request, or says why it cannot have them. pools is how many pools the request
// asks for.
func (p *pools) Open(t kernel.Turn, claim *kernel.Claim, pools, priority int) (why kernel.NoUnits, open bool) {
	l := p.lineBefore(t.Look(), claim.Resource, pools, false, func(c *kernel.Claim) bool {
		return c.Wait.Priority >= priority
	})
	l.picks = &t
	defer func() { t.Take(l.cost()) }() // to say why takes looks, too
	v := l.judge(claim)
	switch {
	case v.grant:
		return why, true
	case v.skip || v.never:
		return kernel.NoUnits{Why: v.why(), OwnLimit: v.skip, Forever: v.never}, false
	}
	return kernel.NoUnits{Why: "needs " + wanted(claim.Asks()) + l.obstacle(claim.Asks())}, false
}

// MayAskTogether refuses a request for units of several pools if there are too many units to look at, or too many names
// for one answer.
func (p *pools) MayAskTogether(claims []*kernel.Claim) *leasehold.Error {
	names, looks := 0, 0
	for _, c := range claims {
		size := p.units.Size(c.Resource)
		names += min(int(c.Slots)*leasehold.MaxName, size.Names)
		looks += size.Units * (1 + c.Asks().Where.Conditions())
	}
	switch {
	case names > leasehold.MaxPoolNames:
		return refuse(leasehold.Limited, "the units that are asked for at once may have %d bytes of names: at most %d "+
			"are allowed; ask for fewer pools at once", names, leasehold.MaxPoolNames).Err
	case looks > leasehold.MaxPoolsUnits:
		return refuse(leasehold.Limited, "the pools that are asked for at once have %d units, counted once and once "+
			"more for each condition: at most %d are allowed; ask for fewer pools at once", looks,
			leasehold.MaxPoolsUnits).Err
	}
	return nil
}

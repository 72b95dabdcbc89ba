package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A pool is a resource whose slots are units with labels, on hosts. Its units are set host by host and not by the
// definition. Which of them a lease gets is decided by package unit, and that it gets them here.

// Pools are those of one namespace: which units there are, who has them and how they are used: see package unit. As
// long as a namespace has no units, nobody is asked.
type Pools interface {
	SetUnits(t Turn, c *SetUnits) Answer
	Drain(t Turn, c *Drain) Answer
	ReportUse(t Turn, c *ReportUse) Answer

	// Has reports whether a path names a pool, Size how many units it has, and Cost what it takes to look for some.
	Has(path string) bool
	Size(path string) int
	Cost(n Namespace, path string) int
	// Unit returns a unit by its name; nil if there is none. Units calls yield with those of a pool by host and name,
	// until it returns false.
	Unit(path, name string) *pool.Unit
	Units(path string, yield func(*pool.Unit) bool)
	// Plan chooses units by what they are worth; nil if there are too few. Most is how many there are for what is
	// asked, and NeverEnough says why these will never do.
	Plan(path string, ask *pool.Ask, worth func(*pool.Unit) int) []*pool.Unit
	Most(path string, ask *pool.Ask) int
	NeverEnough(path string, ask *pool.Ask, most int) string

	// MayAskTogether refuses a request for units of several pools that would be too much to look at.
	MayAskTogether(claims []*Claim) *leasehold.Error
	// Open picks units for a request that does not wait yet, or says why it cannot have them. pools is how many pools
	// it asks for. HasTurn does so for a waiter; byTime says that nothing has changed but time.
	Open(t Turn, c *Claim, pools, priority int) (why NoUnits, open bool)
	HasTurn(t Turn, c *Claim, pools int, byTime bool) bool
	// Fits reports whether a waiter could have its units. It picks none, and nothing that is lent.
	Fits(l Look, c *Claim, pools int) bool
	// OverLimit returns a function that reports whether a waiter of a resource waits because of a limit of its own.
	OverLimit(l Look, path string) func(c *Claim) bool
	// MayGive refuses another holder who would have more units than a limit allows.
	MayGive(l Look, c *Claim, holder string) *leasehold.Error

	// HandOver goes through those who wait for units of a pool. Changed says that there may be something to do for
	// them, and Quiet reports that there is nothing before the stamp.
	HandOver(q *PoolQueue, path string)
	Changed(path string)
	Quiet(n Namespace, path string) bool

	// Give lets a lease have the units that were picked for it, and returns their names. Renamed keeps them with a
	// lease that has another id or holder, and TakeBack takes them from one that ends.
	Give(t Turn, c *Claim) []string
	Renamed(t Turn, from, to *Claim)
	TakeBack(t Turn, c *Claim)
	// Share returns what a lease had of a pool, and Used how long its units were used and were not.
	Share(c *Claim) leasehold.Share
	Used(c *Claim) (busy, idle time.Duration)

	Show(l Look, path string, q PoolQuery) leasehold.PoolStatus
	List(l Look, prefix, after string, most int) (list []leasehold.PoolStatus, next string)

	// Pieces are those of units, before the leases that have them. RestoreHeld gives a unit back to its lease, and
	// reports whether there is such a unit.
	Pieces(yield func(piece any) bool) bool
	Restore(t Turn, piece any) (known bool, err error)
	RestoreHeld(c *Claim, name string) bool
	Copy() Pools
	Check(n Namespace, counted int, that func(ok bool, format string, args ...any))
	CheckLease(n Namespace, c *Claim, that func(ok bool, format string, args ...any))
}

// NoUnits says why a request cannot have units of a pool.
type NoUnits struct {
	Why      string
	OwnLimit bool // because of a limit of its own
	Forever  bool // because there are too few, whoever gives some back
}

// isPool reports whether a path names a pool.
func (sp *space) isPool(path string) bool { return sp.units > 0 && sp.pools.Has(path) }

// isPart reports whether a claim is on units of a pool, and not on all of it.
func (sp *space) isPart(path string, slots uint32) bool { return slots != 0 && sp.isPool(path) }

// poolSize is how many units a resource has as a pool; 0 if it is none.
func (sp *space) poolSize(path string) int {
	if sp.units == 0 {
		return 0
	}
	return sp.pools.Size(path)
}

// poolCost is what it costs to look for units in a pool; 0 if a resource is none.
func (s *State) poolCost(sp *space, path string) int {
	if !sp.isPool(path) {
		return 0
	}
	return sp.pools.Cost(Namespace{s, sp}, path)
}

// poolsAmong returns of how many pools units are asked for.
func poolsAmong(sp *space, claims []*Claim) (n int) {
	if sp.units == 0 {
		return 0
	}
	for _, c := range claims {
		if sp.isPart(c.Resource, c.Slots) {
			n++
		}
	}
	return n
}

// mayAskTogether refuses a request for units of several pools that would be too much to look at. Waiters are judged
// again when their turn comes, because a pool may have grown since.
func (sp *space) mayAskTogether(claims []*Claim) *leasehold.Error {
	if len(claims) < 2 || poolsAmong(sp, claims) < 2 {
		return nil
	}
	return sp.pools.MayAskTogether(claims)
}

// maySelect refuses to select units of a resource that has none with labels and hosts, and tasks where there are none.
func (s *State) maySelect(sp *space, c *Acquire, item Item) *leasehold.Error {
	if item.Select == nil {
		return sp.mixesTasks(c, item.Resource)
	}
	if sp.isPool(item.Resource) {
		return nil
	}
	return refuse(leasehold.Refused, "%s has no units on hosts to select from: say which there are with leasehold "+
		"pool create, or leave where, spread and units out", item.Resource).Err
}

// noSlotsDefined refuses a definition that gives slots to a pool, whose units are its slots.
func (sp *space) noSlotsDefined(d *leasehold.Definition) *leasehold.Error {
	if !sp.isPool(d.Path) || d.Capacity == 0 && len(d.Units) == 0 {
		return nil
	}
	return refuse(leasehold.Refused, "%s is a pool, and its hosts say which units it has: leave capacity and units out",
		d.Path).Err
}

// Asks returns what a claim asks for of a pool.
func (c *Claim) Asks() *pool.Ask {
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

// restoreAsk reads what a claim selects, which snapshots have as text.
func restoreAsk(c *Claim) (err error) {
	if sel := c.terms().Select; sel != nil {
		if c.Terms.ask, err = CompileAsk(int(c.Slots), sel, c.terms().Labels); err != nil {
			return fmt.Errorf("snapshot has lease %q that selects what cannot be read: %w", c.ID, err)
		}
	}
	return nil
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
	why, open := sp.pools.Open(t.in(sp), claim, pools, priority)
	if open {
		return obstacle{}
	}
	return obstacle{at: r, units: why.Why, ownLimit: why.OwnLimit, forever: why.Forever}
}

// turnInPool reports whether a waiter can have its units of a pool now, and picks them. pools is how many pools it
// waits for.
func (t *turn) turnInPool(this wakeup, waiter *Claim, pools int) bool {
	sp := this.space
	r, ok := sp.resources.Get(waiter.Resource)
	return ok && r.Claim == "" && !waiter.Early() && sp.pools.HasTurn(t.in(sp), waiter, pools, this.byTime)
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
	return sp.pools.MayGive(l.readIn(sp), c, change.Holder)
}

// overLimit returns a function that reports whether a waiter of a resource waits because of a limit of its own.
func (l *look) overLimit(sp *space, path string) func(*Claim) bool {
	if len(sp.definition(path).Limits) == 0 {
		return func(*Claim) bool { return false }
	}
	return sp.pools.OverLimit(l.readIn(sp), path)
}

// A picked is the units that a claim gets when it is granted.
type picked struct {
	id       string
	units    []*pool.Unit
	borrowed bool // they were kept for somebody else
}

// borrowed reports whether the claim of an id gets units that were kept for somebody else.
func (t *turn) borrowed(id string) bool {
	return slices.ContainsFunc(t.picked, func(p picked) bool { return p.id == id && p.borrowed })
}

// takeUnits gives a lease the units that were picked for it.
func (t *turn) takeUnits(sp *space, c *Claim) {
	names := sp.pools.Give(t.in(sp), c)
	terms := c.terms()
	terms.Units = names
	c.setTerms(terms)
}

// giveUnits takes the units of a pool from a lease that ends.
func (t *turn) giveUnits(sp *space, c *Claim) {
	if sp.isPool(c.Resource) {
		sp.pools.TakeBack(t.in(sp), c)
	}
}

// used returns how long the units of a lease were used and were not, as far as that was reported.
func (sp *space) used(c *Claim) (busy, idle time.Duration) {
	if !sp.isPool(c.Resource) {
		return 0, 0
	}
	return sp.pools.Used(c)
}

// lookAgain looks at the queue of a pool again when a lease is new or counts for somebody else: somebody may be below
// a limit now, or above one, which frees what was kept for it; and who went before the first in the queue may have left
// it so little on one host that units are kept for it on another.
func (t *turn) lookAgain(sp *space, c *Claim) {
	if !sp.isPool(c.Resource) {
		return
	}
	if r, ok := sp.resources.Get(c.Resource); ok && r.Waiting > 0 {
		t.work.take(t.poolCost(sp, c.Resource))
		t.wakeQueue(sp, c.Resource)
	}
}

// isQuiet reports whether nobody in the queue of a pool can have been granted anything, or have gone, since somebody
// looked last. A waiter shows every few seconds that it is alive, and would else have the whole queue looked at.
func (s *State) isQuiet(sp *space, path string) bool {
	return sp.units > 0 && s.withdrawal == nil && !sp.leaving() && sp.pools.Quiet(Namespace{s, sp}, path)
}

// queueChanged says that the queue of a pool has to be looked at again.
func (sp *space) queueChanged(path string) {
	if sp.units > 0 {
		sp.pools.Changed(path)
	}
}

// handOverUnits grants what is free of a pool to its waiters, as handOver does for other resources.
func (t *turn) handOverUnits(this wakeup) {
	sp := this.space
	if r, ok := sp.resources.Get(this.path); ok && r.Waiting > 0 {
		sp.pools.HandOver(&PoolQueue{Turn: t.in(sp), this: this}, this.path)
	}
}

// A PoolQueue is how far those who wait for units of a pool have been looked at, by the command at hand.
type PoolQueue struct {
	Turn
	this wakeup
	look furtherLook
}

// ByTime reports whether nothing has changed but time.
func (q *PoolQueue) ByTime() bool { return q.this.byTime }

// Begin goes back to the first waiter.
func (q *PoolQueue) Begin() { q.look = newFurtherLook(q.this) }

// Gone reports whether a waiter may no longer be granted, and why.
func (q *PoolQueue) Gone(c *Claim) (leasehold.How, bool) { return q.t.mustLeave(q.sp, c) }

// Hopeless reports whether what is wanted together with a waiter is too much to look at.
func (q *PoolQueue) Hopeless(c *Claim) bool { return q.sp.mayAskTogether(q.t.together(q.sp, c)) != nil }

// HasTurn reports whether a waiter that can have its units is looked at by this entry, and can have what else it waits
// for at the same time.
func (q *PoolQueue) HasTurn(c *Claim) bool {
	if !q.look.reaches(q.t, q.this, c) {
		return false
	}
	others := slices.Clone(q.t.together(q.sp, c))
	return q.t.haveTurn(q.this, slices.DeleteFunc(others, func(other *Claim) bool { return other == c }))
}

// Grant grants to a waiter, and Dismiss lets it leave.
func (q *PoolQueue) Grant(c *Claim) { q.t.grantWaiting(q.this, q.t.together(q.sp, c)) }

func (q *PoolQueue) Dismiss(c *Claim, how leasehold.How) {
	q.t.leave(q.sp, q.t.dismissed(c, how), how)
}

// PutOff leaves what is left to a later entry, and IsPutOff reports whether some of it is.
func (q *PoolQueue) PutOff() { q.look.leave(q.t, q.this) }

func (q *PoolQueue) IsPutOff() bool { return q.look.putOff }

// freeOfPool reports whether any waiter of a pool should have been granted.
func (c *checker) freeOfPool(s *look, sp *space, r *Resource) bool {
	if r.Claim != "" || s.unresumed(sp, r.Path) || sp.handsOver(r.Path) || len(r.more().Rests) > 0 {
		return false
	}
	for w := nextWaiting(sp, r.Path, beforeAll(r.Path)); w != nil; w = nextWaiting(sp, r.Path, w) {
		if w.Early() {
			return false
		}
		if w.Slots == 0 {
			return first(sp, r.Path) == w && s.fits(sp, r, 0, 0) && c.freeFor(s, sp, w)
		}
		if c.freeFor(s, sp, w) {
			return true
		}
	}
	return false
}

// freeUnits reports whether a waiter could have units of a pool.
func (c *checker) freeUnits(s *look, sp *space, w *Claim, pools int) bool {
	r, ok := sp.resources.Get(w.Resource)
	if !ok || r.Claim != "" || s.unresumed(sp, r.Path) || sp.handsOver(r.Path) || len(r.more().Rests) > 0 {
		return false
	}
	// Somebody ahead whose time is over leaves with the next tick, which then looks at the queue.
	for v := first(sp, r.Path); v != nil && v != w; v = nextWaiting(sp, r.Path, v) {
		if _, gone := s.mustLeave(sp, v); gone {
			return false
		}
	}
	if _, gone := s.mustLeave(sp, w); gone || w.Early() {
		return false
	}
	return sp.pools.Fits(s.readIn(sp), w, pools)
}

// What the subject asks.

// Look is what may be read in a turn, by who asks for it and on its budget.
func (k Turn) Look() Look { return k.t.readIn(k.sp) }

// Begin makes a namespace that is new one that there is. It refuses if there are as many as there can be.
func (k Turn) Begin() *leasehold.Error { return k.t.keepSpace(k.sp) }

// CountUnits changes how many units the namespace has.
func (k Turn) CountUnits(n int) { k.sp.units += n }

// SettleAll ends what is over on a resource. It refuses if that is too much for the entry.
func (k Turn) SettleAll(path string) *leasehold.Error {
	k.t.settle(k.sp, path)
	if k.t.unsettled {
		return tooManyOver(path)
	}
	return nil
}

// Pick notes which units a claim gets. They are found out before anything is changed, since a request gets all that it
// asks for or nothing. Picked returns them.
func (k Turn) Pick(id string, units []*pool.Unit, borrowed bool) {
	k.t.picked = slices.DeleteFunc(k.t.picked, func(p picked) bool { return p.id == id })
	k.t.picked = append(k.t.picked, picked{id, units, borrowed})
}

func (k Turn) Picked(id string) []*pool.Unit {
	i := slices.IndexFunc(k.t.picked, func(p picked) bool { return p.id == id })
	return k.t.picked[i].units
}

// SetBreak says that a lease ends at a moment.
func (k Turn) SetBreak(c *Claim, how *Break, at Time) { k.t.setBreak(k.sp, c, how, at) }

// WaitsForTasks reports whether those who wait for a resource wait for tasks.
func (n Namespace) WaitsForTasks(path string) bool { return n.sp.waitsForTasks(path) }

// NextWaiting returns the waiter of a resource that comes behind another, the first one if that is nil; nil if there is
// none.
func (n Namespace) NextWaiting(path string, after *Claim) *Claim {
	if after == nil {
		after = beforeAll(path)
	}
	return nextWaiting(n.sp, path, after)
}

// DeadlineOf returns when a claim ends if nothing is done; 0 if it never does.
func (n Namespace) DeadlineOf(c *Claim) Time { return n.s.deadlineOf(n.sp, c) }

// Resumes returns when the first of the rests of a resource that end by time does; 0 if there is none.
func (n Namespace) Resumes(r *Resource) Time { return r.resumes() }

// Resting returns the names of the units of a resource that rest.
func (n Namespace) Resting(path string) (names btree.Set[string]) {
	if r, ok := n.sp.resources.Get(path); ok {
		names = restingUnits(r.more().resting(n.s.now))
	}
	return names
}

// Quarantined reports whether nothing is granted, since the state was restored from a backup.
func (n Namespace) Quarantined() bool { return n.s.quarantined() }

// RecentOf returns what was learned of leases as a claim is one, and HasKinds reports whether anything was of any kind
// on a resource.
func (n Namespace) RecentOf(c *Claim) usage.Recent { return n.s.recentOf(n.sp, c) }

func (n Namespace) HasKinds(path string) bool { return n.s.hasKinds(n.sp, path) }

// Moment is a moment for people to read.
func (n Namespace) Moment(at Time) time.Time { return n.s.moment(at) }

// KeptUnits adds the units of a pool that are kept for reservations to some names, and KeptWhole reports whether all
// of them are.
func (k Look) KeptUnits(path string, names *btree.Set[string]) {
	k.l.addReservedUnits(k.sp, path, names)
}

func (k Look) KeptWhole(path string) bool {
	_, all := k.l.reservedSlots(k.sp, path)
	return all
}

// Spent reports whether there is no work left.
func (k Look) Spent() bool { return k.l.work.spent() }

// FitsWhole reports whether somebody can have all of a resource, waiters aside.
func (k Look) FitsWhole(r *Resource) bool { return k.l.fits(k.sp, r, 0, 0) }

// Waiter shows a waiter at a place of its queue, and Forecasts when the first waiters of a resource have their turn.
func (k Look) Waiter(c *Claim, position int) leasehold.Waiter { return k.l.waiter(k.sp, c, position) }

func (k Look) Forecasts(r *Resource, most int) []leasehold.Waiter {
	list := k.l.forecasts(k.sp, r, most)
	k.l.work.take(k.l.forecastCost(k.sp, r))
	return list
}

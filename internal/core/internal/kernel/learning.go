package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// Learning is what was learned of kinds of leases, in all namespaces: see package learn. As long as nothing was, and
// no lease of a kind ends, nobody is asked.
type Learning interface {
	// Has reports whether anything was learned of kinds on a resource, and Recent returns what was of one; empty if
	// nothing was.
	Has(n Namespace, path string) bool
	Recent(n Namespace, path, kind string) usage.Recent
	// Learn notes how a lease of a kind went that ended at some moment.
	Learn(t Turn, c *Claim, kind string, how leasehold.How, at Time)
	// Forget forgets a namespace.
	Forget(t Turn)

	// Forecast returns when a waiter of a resource has its turn; if it is nil, when a newcomer would.
	// Forecasts does so for the first waiters. Both say no if that is too much to look at. Cost is what it takes.
	Forecast(l Look, r *Resource, c *Claim) (f usage.Forecast, ok bool)
	Forecasts(l Look, r *Resource, most int) (list []leasehold.Waiter, ok bool)
	Cost(n Namespace, r *Resource) int

	Show(l Look, path, kind string) []leasehold.LearnedKind

	Count(namespace string) int
	Pieces(namespace string, yield func(piece any) bool) bool
	Restore(t Turn, piece any) (known bool, err error)
	Copy() Learning
	Check(n Namespace, that func(ok bool, format string, args ...any))
	CheckAll(counted int, that func(ok bool, format string, args ...any))
}

// kind returns the name of a claim's kind; empty if it has none.
func (s *State) kind(c *Claim) string {
	if c.Terms == nil {
		return ""
	}
	name := usage.KindName(c.Terms.Labels, c.Holder)
	if name == "" && c.Terms.Task {
		return kindOfTask
	}
	return name
}

// kindOfTask is the kind of a lease on a task for which nobody named another. A task is done once: what can be learned
// is how long those of its folder take.
const kindOfTask = "task"

// LearnedOn returns the path under which the kind of a claim is kept.
func (c *Claim) LearnedOn() string {
	if c.OnTask() && !c.Waiting() {
		return leasehold.TaskFolder(c.Resource)
	}
	return c.Resource
}

// hasKinds reports whether anything was learned of a kind of leases on a resource.
func (s *State) hasKinds(sp *space, path string) bool {
	return s.totals.kinds > 0 && s.learning.Has(Namespace{s, sp}, path)
}

// recent returns what was learned of a kind on a resource; empty if nothing was.
func (s *State) recent(sp *space, path, name string) usage.Recent {
	if name == "" || s.totals.kinds == 0 {
		return ""
	}
	return s.learning.Recent(Namespace{s, sp}, path, name)
}

// recentOf is recent for a claim.
func (s *State) recentOf(sp *space, c *Claim) usage.Recent {
	if s.totals.kinds == 0 {
		return ""
	}
	return s.recent(sp, c.LearnedOn(), s.kind(c))
}

// learnKind notes how a lease went that ended at some moment. One that was handed on is of no kind: two holders did
// something with it.
func (t *turn) learnKind(sp *space, c *Claim, how leasehold.How, at Time) {
	if name := t.kind(c); name != "" && c.Terms.ChangedWall == 0 {
		t.learning.Learn(t.in(sp), c, name, how, at)
	}
}

// longFor returns the step of the scale above which a lease is held for unusually long: by its kind, or else by its
// resource.
func (s *State) longFor(sp *space, r *Resource, c *Claim) byte {
	if long := s.recentOf(sp, c).Long(); long != 0 {
		return long
	}
	return r.more().Usual.Long()
}

// pickTTL returns the TTL that a request asks for, or leaves to what was defined or learned.
func (s *State) pickTTL(sp *space, c *Acquire, path string, d leasehold.Definition) time.Duration {
	if c.Pick == TTLAsSaid {
		return c.TTL
	}
	kind := usage.KindName(c.Labels, c.Holder)
	if kind == "" && c.Task {
		kind = kindOfTask
	}
	switch {
	case c.Pick == TTLUnattended && kind == "":
		return sp.usual(path).Recent().Unattended(d)
	case c.Pick == TTLUnattended:
		return s.recent(sp, path, kind).Unattended(d)
	case c.Pick == TTLAuto && kind != "":
		return usage.AdviseKind(s.recent(sp, path, kind), d).TTL
	}
	ttl := c.TTL
	if d.DefaultTTL != 0 {
		ttl = d.DefaultTTL
	}
	if c.Pick == TTLAuto {
		ttl = usage.Advise(sp.usual(path), d, ttl).TTL
	}
	return ttl
}

// Kinds shows what was learned of the kinds of leases on a resource, by name. If a name is given, that is the only one,
// be it known or not.
func (v *view) Kinds(namespace, path, name string) []leasehold.LearnedKind {
	sp := v.s.orNew(v.s.space(namespace), namespace)
	return v.s.learning.Show(v.s.readIn(sp), path, name)
}

// EndsAt returns when a lease ends even if it is renewed: by a break or its hold limit; 0 for never.
func (c *Claim) EndsAt() Time {
	t := c.terms()
	end := t.BreakAt
	if limit := c.Since.Add(t.HoldLimit); t.HoldLimit != 0 && (end == 0 || limit < end) {
		end = limit
	}
	return end
}

// forecastOf returns when a waiter of a resource has its turn; if c is nil, when a newcomer would.
func (l *look) forecastOf(sp *space, r *Resource, c *Claim) usage.Forecast {
	if l.hasKinds(sp, r.Path) {
		if f, ok := l.learning.Forecast(l.readIn(sp), r, c); ok {
			return f
		}
	}
	return l.forecast(sp, r)
}

// forecasts returns the forecasts for the first waiters of a resource, in their order.
func (l *look) forecasts(sp *space, r *Resource, most int) (list []leasehold.Waiter) {
	if l.hasKinds(sp, r.Path) {
		if list, ok := l.learning.Forecasts(l.readIn(sp), r, most); ok {
			return list
		}
	}
	f := l.forecast(sp, r)
	for i := range min(most, r.Waiting) {
		list = append(list, leasehold.Waiter{Forecast: f.After(i)})
	}
	return list
}

// forecastCost is what it takes to answer a request with a forecast.
func (s *State) forecastCost(sp *space, r *Resource) int {
	if !s.hasKinds(sp, r.Path) {
		return 0
	}
	return s.learning.Cost(Namespace{s, sp}, r)
}

// What the subject asks.

// Kinds returns of how many kinds something was learned in all namespaces, and CountKinds changes that.
func (k Turn) Kinds() int { return k.t.totals.kinds }

func (k Turn) CountKinds(n int) { k.t.totals.kinds += n }

// Pulse returns the TTL that a lease lives by, and the largest part of it that passed without a renewal.
func (n Namespace) Pulse(c *Claim) (ttl time.Duration, gap uint8) { return n.s.pulse(n.sp, c) }

// Rests returns the rests of a resource that are not over.
func (n Namespace) Rests(r *Resource) []Rest { return r.more().resting(n.s.now) }

// AvailableAfter returns when something is granted again, after the state was restored from a backup; 0 if it is.
func (n Namespace) AvailableAfter() Time { return n.s.availableAfter() }

// IsPool reports whether the slots of a resource are units, PoolSize how many it has, and Units calls yield with them
// by host and name, until it returns false.
func (n Namespace) IsPool(path string) bool { return n.sp.isPool(path) }

func (n Namespace) PoolSize(path string) int { return n.sp.poolSize(path) }

func (n Namespace) Units(path string, yield func(*pool.Unit) bool) { n.sp.pools.Units(path, yield) }

// OverLimit returns a function that reports whether a waiter of a resource waits because of a limit of its own.
func (k Look) OverLimit(path string) func(*Claim) bool { return k.l.overLimit(k.sp, path) }

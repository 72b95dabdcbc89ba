package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/btree"
)

// A Line is those who wait for units of a pool, in their order, as far as somebody looks at them. A unit that is free
// is for the first in the line that could use it: nobody behind gets it, even if the first one needs more than is free.
//
// "Could use" leaves out units that are drained, and hosts with fewer units than a request needs on one host. The
// first in the line that needs units on one host is content with one host: with the one that has the most of them
// free. What is free elsewhere is for those behind it.
type Line struct {
	table   *Table
	pool    string
	resting btree.Set[string]
	kept    []keeper
	nothing btree.Map[uint64, []*Ask] // by key: of those who could use none of the units
	full    bool
	most    int // units and hosts that are looked at

	begins func(*Ask, func(*Unit) bool) time.Duration // of Lend
	lasts  time.Duration                              // how long what is picked now will be used; 0: nobody borrows

	Looked int // units and hosts that were looked at
}

// MaxLooked is how many units and hosts are looked at in the lines of one request. Nobody behind is granted anything
// before one of those is gone for whom that was: it would take too long.
const MaxLooked = 1 << 17

// A match is whether a request wants the unit that was looked at last. Units of a host that have the same labels are
// wanted alike.
type match struct {
	unit   *Unit
	wanted bool
}

// wants is Wants, and counts what it takes.
func (l *Line) wants(a *Ask, u *Unit, last *match) bool {
	if l.Looked++; a.All || len(a.Units) > 0 || len(a.Where.conditions) == 0 {
		return a.Wants(u)
	}
	if last.unit == nil || a.Where.names || last.unit.Host != u.Host || !slices.Equal(last.unit.Labels, u.Labels) {
		l.Looked += lookedPerCondition * len(a.Where.conditions)
		last.wanted = a.Wants(u)
	}
	last.unit = u
	return last.wanted
}

// lookedPerCondition is how many units are looked at in the time that a condition takes.
const lookedPerCondition = 2

// A keeper is one in the line for whom units are kept.
type keeper struct {
	ask   *Ask
	fixed bool // only those of one host
	host  string
	could *btree.Map[string, bool] // by host, where ask needs all on one: whether there are enough
	last  match
	lends *time.Duration // for how long it can do without what is kept for it; nil: not known yet
}

// MaxKept is for how many different requests units are kept. Nobody behind them is granted anything before one of them
// is: to compare every free unit with thousands of requests would take too long.
const MaxKept = 16

// NewLine returns a line that nobody stands in. resting are the names of units that rest.
func NewLine(t *Table, pool string, resting btree.Set[string]) *Line {
	return &Line{table: t, pool: pool, resting: resting, most: MaxLooked}
}

// Share has an equal part of what is looked at for a request that asks for units of several pools.
func (l *Line) Share(pools int) { l.most = MaxLooked / pools }

// Stop keeps everything from those who come next: nobody looks at more of those before them.
func (l *Line) Stop() { l.full = true }

// Full reports whether units are kept for as many as there can be, or as many were looked at.
func (l *Line) Full() bool { return l.full || l.Tired() }

// Tired reports whether as many units and hosts were looked at as may be.
func (l *Line) Tired() bool { return l.Looked > l.most }

// free reports whether a unit can be granted to the one who comes next in the line.
func (l *Line) free(a *Ask, u *Unit) bool {
	l.Looked++
	if u.Lease != "" || !a.fit(u) || l.resting.Contains(u.Name) {
		return false
	}
	for i := range l.kept {
		if l.keeps(&l.kept[i], u) && (l.lasts == 0 || l.lends(i) < l.lasts) {
			return false
		}
	}
	return true
}

// keeps reports whether a unit is kept for somebody.
func (l *Line) keeps(k *keeper, u *Unit) bool {
	switch {
	case !l.wants(k.ask, u, &k.last):
		return false
	case k.fixed:
		return u.Host == k.host
	case !k.ask.OneHost():
		return true
	}
	could, known := k.could.Get(u.Host)
	if !known {
		h, _ := l.table.hosts.Get(&Host{Pool: l.pool, Name: u.Host})
		_, fit, _ := l.on(k.ask, h)
		could = fit >= k.ask.N
		k.could.Set(u.Host, could)
	}
	return could
}

// on counts the units of a host that a request asks for: all of them, those that are fit, and those that are free.
func (l *Line) on(a *Ask, h *Host) (all, fit, free int) {
	var last match
	for _, u := range l.list(a, h) {
		if u.Removed || !l.wants(a, u, &last) {
			continue
		}
		all++
		if !a.fit(u) {
			continue
		}
		fit++
		if u.Lease == "" && !l.resting.Contains(u.Name) {
			free++
		}
	}
	return all, fit, free
}

// hosts calls yield with the hosts that may have units that a request asks for, by name, until it returns false.
func (l *Line) hosts(a *Ask, yield func(*Host) bool) {
	l.searches(a)
	l.table.hostsFor(l.pool, a, yield)
}

// hostsFor is Hosts for those that may have units that a request asks for.
func (t *Table) hostsFor(pool string, a *Ask, yield func(*Host) bool) {
	names, said := a.Where.among(KeyHost)
	if units, some := a.names(); some {
		names, said = nil, true
		for _, unit := range units {
			if its, ok := t.homes.Get(home{pool: pool, name: unit}); ok {
				names = append(names, its.host)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	if !said {
		t.Hosts(pool, yield)
		return
	}
	for _, name := range names {
		if h, ok := t.hosts.Get(&Host{Pool: pool, Name: name}); ok && !yield(h) {
			return
		}
	}
}

// Pick returns the units that a request gets, if it is the next in the line; nil if it has to wait. Those that its
// holder had last come first, since that is where its data may still be; then those that nobody had yet; then those
// that have been free longest. Of several hosts it is the one with the most units that the holder had last; then the
// one that has the fewest others free, so that whole hosts stay free for those who need them; then the one whose units
// have been free longest.
func (l *Line) Pick(a *Ask, holder string) []*Unit {
	if l.Full() || a.All || l.Repeats(a) {
		return nil
	}
	return l.choose(a, holder)
}

// Lend lets those who come next borrow what is kept for others. begins says after which time a request may have enough
// units that are not kept for others.
func (l *Line) Lend(begins func(ask *Ask, kept func(*Unit) bool) time.Duration) { l.begins = begins }

// Borrow is Pick for a request that will be over after some time: it may have what is kept for others who can do
// without it for longer.
func (l *Line) Borrow(a *Ask, holder string, lasts time.Duration) []*Unit {
	if l.Full() || a.All || l.begins == nil || lasts <= 0 {
		return nil
	}
	l.lasts = lasts
	defer func() { l.lasts = 0 }()
	return l.choose(a, holder)
}

// lends returns for how long others may have what is kept for one in the line: until it may begin. What is kept for
// those before it becomes free to it when the first of them begins, and not sooner.
func (l *Line) lends(i int) time.Duration {
	k := &l.kept[i]
	if k.lends == nil {
		k.lends = new(l.begins(k.ask, func(u *Unit) bool {
			return slices.ContainsFunc(l.kept[:i], func(before keeper) bool { return l.keeps(&before, u) })
		}))
		for before := range i {
			*k.lends = min(*k.lends, l.lends(before))
		}
	}
	return *k.lends
}

// choose picks units that are free and kept for nobody.
func (l *Line) choose(a *Ask, holder string) []*Unit {
	switch {
	case len(a.Units) > 0:
		return l.named(a)
	case a.Spread:
		best := newBest(a.N, holder)
		l.hosts(a, func(h *Host) bool {
			l.Looked++
			l.collect(a, h, best)
			return true
		})
		return best.picked()
	}
	var chosen *best
	candidate := newBest(a.N, holder)
	l.hosts(a, func(h *Host) bool {
		l.Looked++
		if h.Free < a.N {
			return true
		}
		candidate.reset()
		l.collect(a, h, candidate)
		candidate.settle()
		if candidate.seen >= a.N && (chosen == nil || candidate.before(chosen)) {
			if chosen == nil {
				chosen = newBest(a.N, holder)
			}
			chosen, candidate = candidate, chosen
		}
		return true
	})
	if chosen == nil {
		return nil
	}
	return chosen.picked()
}

// named returns the units that a request names, if all of them can be granted.
func (l *Line) named(a *Ask) []*Unit {
	units := make([]*Unit, 0, len(a.Units))
	for _, name := range a.Units {
		l.Looked += lookedPerSearch
		u := l.table.Get(l.pool, name)
		if u == nil || !l.free(a, u) {
			return nil
		}
		units = append(units, u)
	}
	return units
}

// collect adds the units of a host that a request can have to those that were seen on it, or on hosts before it.
func (l *Line) collect(a *Ask, h *Host, into *best) {
	if h.Free == 0 {
		return
	}
	var last match
	for _, u := range l.list(a, h) {
		if u.Free() && l.wants(a, u, &last) && l.free(a, u) {
			into.add(u)
		}
	}
}

// Keep lets a request that was not granted stand in the line. It reports whether there is anything that the request
// could use, now or ever: if not now, nothing is kept for it, and nobody looks for those who ask for the same.
func (l *Line) Keep(a *Ask) (now, ever bool) {
	if l.Full() || l.Repeats(a) {
		return true, true
	}
	k := keeper{ask: a}
	if a.OneHost() && len(l.kept) == 0 {
		k.host, now, ever = l.fix(a)
		k.fixed = true
	} else if now, ever = l.possible(a); a.OneHost() {
		k.could = new(btree.Map[string, bool])
	}
	switch {
	case now:
		l.kept = append(l.kept, k)
		l.full = a.All || len(l.kept) == MaxKept
	case ever:
		alike, _ := l.nothing.Get(a.key())
		l.nothing.Set(a.key(), append(alike, a))
	}
	return now, ever
}

// possible reports whether there are as many units as a request needs that it could use, and whether there would be if
// none was drained or unfit.
func (l *Line) possible(a *Ask) (now, ever bool) {
	if a.All {
		return true, true
	}
	fit, all := 0, 0
	l.hosts(a, func(h *Host) bool {
		l.Looked++
		if a.OneHost() && h.Units < a.N {
			return true
		}
		here, fitHere, _ := l.on(a, h)
		if all, fit = all+here, fit+fitHere; a.OneHost() {
			all, fit = here, fitHere
		}
		ever, now = ever || all >= a.N, fit >= a.N
		return !now
	})
	return now, ever
}

// fix returns the host on which units are kept for the first in the line: of those that have enough, the one that has
// the most of them free. It changes only to a host that is closer to what is asked for, so what is kept never
// becomes less. It reports as possible does whether there is one.
func (l *Line) fix(a *Ask) (host string, now, ever bool) {
	most := -1
	l.hosts(a, func(h *Host) bool {
		l.Looked++
		if h.Units < a.N || most >= 0 && h.Free <= most {
			return true
		}
		all, fit, free := l.on(a, h)
		if ever = ever || all >= a.N; fit >= a.N && free > most {
			host, most = h.Name, free
		}
		return true
	})
	return host, most >= 0, ever
}

// Kept returns the host on which units are kept for the first in the line, how many of them are free, and whether
// there is such a host.
func (l *Line) Kept() (host string, free int, ok bool) {
	if len(l.kept) == 0 || !l.kept[0].fixed {
		return "", 0, false
	}
	h, _ := l.table.hosts.Get(&Host{Pool: l.pool, Name: l.kept[0].host})
	_, _, free = l.on(l.kept[0].ask, h)
	return h.Name, free, true
}

// Most returns how many units a request could get one day: on one host, unless they may be on several. Units that are
// drained count. It does not look for more than are asked for.
func (t *Table) Most(pool string, a *Ask) int { return (&Line{table: t, pool: pool}).Most(a) }

// Most is that of the table.
func (l *Line) Most(a *Ask) (most int) {
	found := 0
	l.hosts(a, func(h *Host) bool {
		here, _, _ := l.on(a, h)
		if found += here; a.OneHost() {
			found = here
		}
		most = max(most, found)
		return most < a.N
	})
	return min(most, a.N)
}

// A best is the best units of those that were seen, the best first.
type best struct {
	n      int
	holder string
	units  []*Unit
	seen   int
}

func newBest(n int, holder string) *best { return &best{n: n, holder: holder} }

func (b *best) reset() { b.units, b.seen = b.units[:0], 0 }

// add sees one more unit. Of a few the best are kept in their order; many are put in order when all were seen.
func (b *best) add(u *Unit) {
	b.seen++
	if b.n > fewUnits {
		b.units = append(b.units, u)
		return
	}
	if len(b.units) == b.n {
		if b.compare(u, b.units[len(b.units)-1]) >= 0 {
			return
		}
		b.units = b.units[:len(b.units)-1]
	}
	at, _ := slices.BinarySearchFunc(b.units, u, b.compare)
	b.units = slices.Insert(b.units, at, u)
}

const fewUnits = 64

// settle leaves the best units, the best first.
func (b *best) settle() {
	if b.n > fewUnits && b.seen >= b.n {
		slices.SortFunc(b.units, b.compare)
		b.units = b.units[:b.n]
	}
}

// picked returns the units by host and name; nil if there are too few.
func (b *best) picked() []*Unit {
	if b.seen < b.n {
		return nil
	}
	b.settle()
	slices.SortFunc(b.units, func(a, b *Unit) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name))
	})
	return b.units
}

// compare orders units for a holder. No two are equal, so that the order in which they are seen does not matter.
func (b *best) compare(u, v *Unit) int {
	return cmp.Or(b.others(u)-b.others(v), cmp.Compare(u.Freed, v.Freed), cmp.Compare(u.Host, v.Host),
		cmp.Compare(u.Name, v.Name))
}

// others returns 0 for a unit that the holder had last, and 1 for one that it had not.
func (b *best) others(u *Unit) int {
	if u.Freed != 0 && u.Holder == b.holder {
		return 0
	}
	return 1
}

// before reports whether the units of one host go before those of another.
func (b *best) before(other *best) bool {
	strangers := func(b *best) (n int) {
		for _, u := range b.units {
			n += b.others(u)
		}
		return n
	}
	last := func(b *best) *Unit { return b.units[len(b.units)-1] }
	return cmp.Or(strangers(b)-strangers(other), b.seen-other.seen, cmp.Compare(last(b).Freed, last(other).Freed)) < 0
}

// Empty reports whether the next is the first: nothing is kept for anybody.
func (l *Line) Empty() bool { return len(l.kept) == 0 && !l.full }

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Pools over several hosts: units with labels that come, go and are drained while they are held and waited for. The
// witness knows what each host said, and reads who has which unit from the first server that comes to it.

const cards = "cards"

// hosts are what each host has at most: the models of its cards.
var hosts = map[string][]string{"h1": {"A", "A", "B"}, "h2": {"A", "B", "B"}}

// A card is a unit as its host and operators say.
type card struct {
	host, model string
	unfit       bool
	drained     bool
	removed     bool
	lease       string
	anew        bool // it was removed and came back: nobody knows whether it had gone in between
}

func (u *card) fit() bool { return !u.unfit && !u.drained && !u.removed }

// An ask is which units somebody asks for.
type ask struct {
	model  string // empty: any
	spread bool
	units  string // with commas: exactly these
	slots  int
}

func newAsk(a *core.Acquire) ask {
	if a.Select == nil {
		return ask{slots: a.Slots}
	}
	x := a.Select
	return ask{strings.TrimPrefix(x.Where, "model="), x.Spread, strings.Join(x.Units, ","), a.Slots}
}

// wants reports whether a unit is what is asked for.
func (x *ask) wants(name string, u *card) bool {
	return (x.model == "" || x.model == u.model) && (x.units == "" || x.units == name)
}

// bringUnits is hosts and operators who say which units there are, and whether they are to be granted.
func (w *World) bringUnits() {
	if w.quiet {
		return
	}
	w.after(w.between(time.Second, 8*time.Second), w.bringUnits)
	c, space := newClient(w, 94), w.space()
	switch n := w.random.IntN(10); {
	case n < 2:
		d := leasehold.Definition{Path: cards, Backfill: w.chance(70)}
		c.insist(&core.Define{Namespace: space, Definition: d}, 3)
	case n < 4:
		why := "loud"
		if w.chance(50) {
			why = ""
		}
		c.insist(&core.Drain{Namespace: space, Resource: cards, Units: []string{w.unit()}, Why: why, By: c.name}, 3)
	default:
		c.insist(w.unitsOf(space), 3)
	}
}

// unit names one of those that there may be.
func (w *World) unit() string {
	host := fmt.Sprint("h", 1+w.random.IntN(len(hosts)))
	return fmt.Sprint(host, "-", w.random.IntN(len(hosts[host])))
}

// unitsOf is what a host says that it has: mostly all.
func (w *World) unitsOf(space string) *core.SetUnits {
	c := &core.SetUnits{Namespace: space, Resource: cards, Host: fmt.Sprint("h", 1+w.random.IntN(len(hosts)))}
	for i, model := range hosts[c.Host] {
		u := core.HostUnit{Name: fmt.Sprint(c.Host, "-", i), Labels: leasehold.Labels{{Key: "model", Value: model}}}
		if w.chance(5) {
			u.Unfit = "hot"
		}
		if !w.chance(10) {
			c.Units = append(c.Units, u)
		}
	}
	return c
}

// A job is a grip on units.
type job struct {
	grip   *grip
	takes  time.Duration // if it is known
	units  leasehold.Select
	slots  int
	labels leasehold.Labels
	limit  time.Duration
	also   []core.Item
}

// jobKinds are how long jobs take.
var jobKinds = map[string]time.Duration{"long": 12 * time.Second, "short": 400 * time.Millisecond}

// ofPool lets a grip ask for units, some together with a tool.
func (g *grip) ofPool() {
	w := g.client.world
	x := &job{grip: g, slots: 1 + w.random.IntN(3)}
	g.at.name, g.slots, g.subject, g.grace = cards, x.slots, x, 0
	switch w.random.IntN(6) {
	case 0, 1:
		x.units.Where = "model=" + string(rune('A'+w.random.IntN(2)))
	case 2:
		x.units.Spread = true
	case 3:
		x.slots, g.slots, x.units.Units = 1, 1, []string{w.unit()}
	}
	if w.chance(95) {
		kind := []string{"long", "short"}[w.random.IntN(2)]
		x.labels, x.takes, g.steady = leasehold.Labels{{Key: "kind", Value: kind}}, jobKinds[kind], true
	}
	if x.takes < time.Second && w.chance(50) {
		x.limit = w.between(500*time.Millisecond, 3*time.Second)
	}
	if w.chance(25) {
		x.also = []core.Item{{Resource: fmt.Sprint("tool", w.random.IntN(3)), ID: g.id + "t"}}
		g.bound = true
	}
}

func (x *job) asks(a *core.Acquire) {
	a.Slots, a.Select, a.Labels, a.HoldLimit, a.Also = x.slots, &x.units, x.labels, x.limit, x.also
}

// begun gives the units back after as long as such jobs take.
func (x *job) begun() {
	g := x.grip
	if !g.steady {
		return
	}
	g.client.later(g.client.world.between(x.takes, x.takes*5/4), func() {
		if g.mine() && g.believes() {
			g.giveBack()
		}
	})
}

func (x *job) end() bool { return false }

// unitsChanged follows what hosts and operators say of units.
func (t *witness) unitsChanged(c core.Command, answer core.Answer) {
	if answer.Err != nil {
		return
	}
	switch c := c.(type) {
	case *core.SetUnits:
		t.unitsSet(c)
	case *core.Drain:
		for _, name := range c.Units {
			if u := t.subjects.pools[spot{c.Namespace, c.Resource}][name]; u != nil {
				u.drained = c.Why != ""
			}
		}
	}
}

func (t *witness) unitsSet(c *core.SetUnits) {
	at := spot{c.Namespace, c.Resource}
	units := t.subjects.pools[at]
	if units == nil {
		if len(c.Units) == 0 {
			return
		}
		units = map[string]*card{}
		t.subjects.pools[at] = units
	}
	for _, u := range units {
		said := slices.ContainsFunc(c.Units, func(o core.HostUnit) bool { return units[o.Name] == u })
		u.removed = u.removed || u.host == c.Host && !said
	}
	for _, said := range c.Units {
		u := units[said.Name]
		if u == nil {
			u = &card{}
			units[said.Name] = u
		}
		u.anew = u.anew || u.removed && u.drained
		u.host, u.model, u.unfit, u.removed = c.Host, said.Labels[0].Value, said.Unfit != "", false
	}
}

// sameAsk checks that nobody is granted units before somebody who asked earlier for just the same.
func (t *witness) sameAsk(p *promise, e *leasehold.Event) {
	if e.By == leasehold.ByBackfill {
		t.borrowed(p)
		return
	}
	for _, o := range t.place(p.at).queue {
		if o != p && o.before(p) && o.waiting.ask == p.waiting.ask && o.waiting.with == nil && t.wanted(o) {
			t.world.violated("%s is granted units of %s, and %s asked for the same before it", p.id, p.at.name, o.id)
		}
	}
}

// borrowed checks that what is kept for somebody is lent only where that was defined, while somebody waits, and to
// somebody of whom it is known how long it takes.
func (t *witness) borrowed(p *promise) {
	t.world.count("units borrowed")
	waits := slices.ContainsFunc(t.place(p.at).queue, func(o *promise) bool { return o != p && o.before(p) })
	switch {
	case !t.definition(p.at).Backfill:
		t.world.violated("%s borrows units of %s, which are not to be lent", p.id, p.at.name)
	case !waits:
		t.world.violated("%s borrows units of %s, and nobody waits before it", p.id, p.at.name)
	case p.limit == 0 && p.waiting.kind == "":
		t.world.violated("%s borrows units of %s, and nobody knows for how long", p.id, p.at.name)
	}
	if p.limit != 0 && p.waiting.kind == "" {
		t.lentFor(p)
	}
}

// lentFor checks that nobody is lent units for longer than until all others have to be over: who waits may begin then.
func (t *witness) lentFor(p *promise) {
	latest := core.Time(0)
	for _, o := range t.place(p.at).holders {
		if o.hard == 0 && o.breaks == 0 {
			return // it can go on
		}
		latest = max(latest, o.ends())
	}
	if over := t.now + core.Time(p.limit); over > latest {
		t.world.violated("%s borrows units of %s for %v, and all others end %v before", p.id, p.at.name, p.limit,
			time.Duration(over-latest))
	}
}

// unitsOfAll reads who has which units after an entry, and checks that each is had once, by somebody who asked for it.
func (t *witness) unitsOfAll(s *server, events []*leasehold.Event) {
	if s.node == nil {
		return
	}
	for _, at := range sortedSpots(t.subjects.pools) {
		touched := slices.ContainsFunc(events, func(e *leasehold.Event) bool {
			return e.Resource == at.name && e.Namespace == at.space
		})
		if !touched {
			continue
		}
		status, ok := s.node.State().View(0).Pool(at.space, at.name, core.PoolQuery{Most: 100})
		if !ok {
			t.noPool(s, at)
			continue
		}
		t.unitsAre(at, status.Units)
		t.unitsFree(at, status.Units)
	}
}

// noPool checks that a pool is gone with the last of its units alone.
func (t *witness) noPool(s *server, at spot) {
	for name, u := range t.subjects.pools[at] {
		if !u.removed {
			t.world.violated("server %d has no pool %s, and there is unit %s", s.id, at.name, name)
			return
		}
	}
	delete(t.subjects.pools, at)
}

// unitsAre compares the units of a pool with what leases should have.
func (t *witness) unitsAre(at spot, units []leasehold.PoolUnit) {
	has := map[string][]*card{}
	known := t.subjects.pools[at]
	for _, is := range units {
		u := known[is.Name]
		if u != nil && u.anew {
			u.drained, u.anew = is.Drained != "", false
		}
		if u == nil || u.host != is.Host || u.removed != is.Removed || u.drained != (is.Drained != "") ||
			u.unfit != (is.Unfit != "") {
			t.world.violated("unit %s of %s is %+v, and should be %+v", is.Name, at.name, is, u)
			return
		}
		if is.Lease != u.lease && is.Lease != "" && !u.fit() {
			t.world.count("units granted and taken out at once") // in one entry
		}
		if u.lease = is.Lease; u.lease != "" {
			has[u.lease] = append(has[u.lease], u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !slices.ContainsFunc(units, func(is leasehold.PoolUnit) bool { return is.Name == name }) {
			if !known[name].removed {
				t.world.violated("unit %s of %s has gone", name, at.name)
			}
			delete(known, name)
		}
	}
	for _, p := range t.place(at).holders {
		t.suits(at, p, has[p.id])
		delete(has, p.id)
	}
	for id := range has {
		t.world.violated("%s has units of %s, and does not hold it", id, at.name)
	}
}

// suits checks that a lease has what it asked for.
func (t *witness) suits(at spot, p *promise, has []*card) {
	x := p.waiting.ask
	apart := false
	for _, u := range has {
		apart = apart || u.host != has[0].host
		if x.model != "" && x.model != u.model {
			t.world.violated("%s asked for %+v of %s, and has %+v", p.id, x, at.name, *u)
		}
	}
	if len(has) != p.slots || apart && !x.spread {
		t.world.violated("%s asked for %+v of %s, and has %d units, on several hosts: %v", p.id, x, at.name, len(has),
			apart)
	}
}

// unitsFree checks that the first in the queue is not left waiting for what is free. What is kept for others does not
// matter to it.
func (t *witness) unitsFree(at spot, units []leasehold.PoolUnit) {
	p := t.place(at)
	if len(p.queue) == 0 || len(p.rests) > 0 || t.quarantined() || t.resuming(false) {
		return
	}
	first := p.queue[0]
	if first.waiting.with != nil || !t.wanted(first) {
		return
	}
	free := map[string]int{}
	for _, is := range units {
		u := t.subjects.pools[at][is.Name]
		x := first.waiting.ask
		if u == nil || u.lease != "" || !u.fit() || !x.wants(is.Name, u) {
			continue
		}
		host := u.host
		if x.spread {
			host = ""
		}
		if free[host]++; free[host] >= first.slots {
			t.world.violated("%s waits for %+v of %s, which is free", first.id, x, at.name)
			return
		}
	}
}

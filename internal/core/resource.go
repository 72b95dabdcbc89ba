package core

import (
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A Resource is kept while somebody has it or wants it, and for a while after,
// for what it remembers.
type Resource struct {
	Path    string
	Claim   string // the id of the exclusive lease on it, if any
	Waiting int
	Idle    uint64
	More    *More // what a resource has that was held before, or is shared

	timer *timer // while somebody waits for the end of a rest
}

// More is what a resource has that was held before, or is shared.
type More struct {
	Last   *Ending
	Rests  []Rest
	Shares *Shares      // nil: nobody has, wants or remembers slots of it
	Usual  *usage.Usual // nil: nothing is learned yet
}

// An Ending is what a resource remembers of its last lease.
type Ending struct {
	ID     string
	Holder string
	Token  leasehold.Token
	How    leasehold.How
	By     string
	Reason string
	Wall   int64

	// From level 4 on.
	Foreign string        // as in Terms
	TTL     time.Duration // of the lease; 0: it had none of its own
}

// A Rest keeps slots free after an unclean end.
type Rest struct {
	Slots uint32 // 0: all
	Units []string
	Until Time // 0: until somebody acknowledges the end
	After *Ending
}

// Shares is how the slots of a resource are taken.
type Shares struct {
	Capacity int // what holders and waiters agreed on; a definition goes before it
	Units    []Unit

	// What follows can be told from the leases.
	used    int
	holders int
	soonest Time // no lease on it ends before; 0: none ends by time
}

// A Unit is a slot with a name.
type Unit struct {
	Name   string
	Holder string // who has it, or had it last
	Freed  Time   // 0 if nobody had it yet
	lease  string // the id of the lease that has it
}

func (r *Resource) more() More {
	if r.More == nil {
		return More{}
	}
	return *r.More
}

func (r *Resource) setMore(m More) {
	r.More = &m
	if m.Last == nil && len(m.Rests) == 0 && m.Shares == nil && m.Usual == nil {
		r.More = nil
	}
}

func (m More) shares() Shares {
	if m.Shares == nil {
		return Shares{}
	}
	return *m.Shares
}

// resting returns the rests that are not over at a moment, in a slice of its own.
func (m More) resting(now Time) (rests []Rest) {
	for _, rest := range m.Rests {
		if rest.Until == 0 || rest.Until > now {
			rests = append(rests, rest)
		}
	}
	return rests
}

// maxRests is how many rests of one resource are told apart.
const maxRests = 128

// merged makes one of the two oldest rests if there are too many: it lasts as long as
// the longer of them, which is late for some slots and early for none.
func merged(rests []Rest) []Rest {
	if len(rests) <= maxRests {
		return rests
	}
	a, b := rests[0], rests[1]
	both := Rest{Slots: a.Slots + b.Slots, Units: slices.Concat(a.Units, b.Units), Until: max(a.Until, b.Until), After: a.After}
	if a.Slots == 0 || b.Slots == 0 {
		both.Slots = 0
	}
	if a.Until == 0 || b.Until == 0 {
		both.Until = 0
	}
	if b.After.Token > a.After.Token {
		both.After = b.After
	}
	return append([]Rest{both}, rests[2:]...)
}

// rests returns how many slots rest at a moment, and whether all do.
func (r *Resource) rests(now Time) (slots int, all bool) {
	if r.More == nil {
		return 0, false
	}
	for _, rest := range r.More.Rests {
		if rest.Until != 0 && rest.Until <= now {
			continue
		}
		slots += int(rest.Slots)
		all = all || rest.Slots == 0
	}
	return slots, all
}

// resumes returns when the first of the rests that end by time does; 0 if there is none.
func (r *Resource) resumes() (at Time) {
	if r.More == nil {
		return 0
	}
	for _, rest := range r.More.Rests {
		if rest.Until != 0 && (at == 0 || rest.Until < at) {
			at = rest.Until
		}
	}
	return at
}

// longestRest returns the rest that keeps slots longest at a moment; nil if none does.
func (r *Resource) longestRest(now Time) *Rest {
	var longest *Rest
	for _, rest := range r.more().resting(now) {
		if longest == nil || longest.Until != 0 && (rest.Until == 0 || rest.Until > longest.Until) {
			longest = &rest
		}
	}
	return longest
}

// held tells whether anybody has the resource, or some of it.
func (r *Resource) held() bool { return r.Claim != "" || r.sharers() > 0 }

func (r *Resource) sharers() int {
	if r.More == nil || r.More.Shares == nil {
		return 0
	}
	return r.More.Shares.holders
}

// A sharer is a lease on some slots of a resource, in the order of the tokens.
type sharer struct {
	path  string
	token leasehold.Token
	id    string
}

// holders goes over the leases on a resource in the order of their tokens, until
// yield says no.
func (sp *space) holders(r *Resource, yield func(*Claim) bool) {
	if r.Claim != "" {
		c, _ := sp.claims.Get(r.Claim)
		yield(c)
		return
	}
	if r.sharers() == 0 {
		return
	}
	sp.sharers.Ascend(sharer{path: r.Path}, func(at sharer) bool {
		if at.path != r.Path {
			return false
		}
		c, _ := sp.claims.Get(at.id)
		return yield(c)
	})
}

// senior returns the lease on a resource with the smallest token; nil if nobody has it.
func (sp *space) senior(r *Resource) (senior *Claim) {
	sp.holders(r, func(c *Claim) bool {
		senior = c
		return false
	})
	return senior
}

// maxFloor is how many leases are looked at that are over and not collected yet.
const maxFloor = 1024

// floor returns the smallest token that is alive on the resource of a lease. What is over
// counts no more, collected or not: a guard that heard of it would let a late holder in.
func (s *State) floor(sp *space, c *Claim) leasehold.Token {
	if c.Slots == 0 {
		return c.Token
	}
	r, _ := sp.resources.Get(c.Resource)
	if s.atLeast(Level4) {
		floor, looked := c.Token, 0
		sp.holders(r, func(holder *Claim) bool {
			if _, _, over := s.over(sp, holder); over && looked < maxFloor {
				looked++
				return true
			}
			floor = min(floor, holder.Token)
			return false
		})
		return floor
	}
	if senior := sp.senior(r); senior != nil {
		return min(senior.Token, c.Token)
	}
	return c.Token
}

// junior returns the lease on a resource with the largest token; nil if nobody has it.
func (sp *space) junior(r *Resource) (junior *Claim) {
	if r.sharers() == 0 {
		return sp.senior(r)
	}
	sp.sharers.Descend(sharer{path: r.Path, token: leasehold.MaxToken}, func(at sharer) bool {
		junior, _ = sp.claims.Get(at.id)
		return false
	})
	return junior
}

// capacity returns how many slots a resource has; 0 if nobody said.
func (sp *space) capacity(r *Resource, d leasehold.Definition) int {
	switch {
	case len(d.Units) > 0:
		return len(d.Units)
	case d.Capacity > 0:
		return d.Capacity
	case r != nil && r.More != nil && r.More.Shares != nil:
		return r.More.Shares.Capacity
	}
	return 0
}

// fits tells whether so many slots of a resource are free, those who wait aside. If
// nobody said how many there are, it is as many as whoever asks says: slots may rest
// although all who shared them are gone.
func (s *State) fits(sp *space, r *Resource, slots uint32, said int) bool {
	if r.Claim != "" {
		return false
	}
	resting, all := r.rests(s.now)
	if s.plants(Oversubscribe) {
		resting = 0
	}
	switch {
	case all:
		return false
	case slots == 0:
		return resting == 0 && r.sharers() == 0
	case r.More == nil:
		return true
	}
	if known := sp.capacity(r, sp.definition(r.Path)); known != 0 {
		said = known
	}
	return r.More.shares().used+resting+int(slots) <= said
}

// occupy notes on a resource that a lease has it, and gives the lease its units.
func (s *State) occupy(sp *space, r *Resource, c *Claim) {
	more := r.more()
	more.Rests = more.resting(s.now)
	d := sp.definition(r.Path)
	if c.Slots == 0 {
		r.Claim = c.ID
	}
	if c.Slots == 0 && len(d.Units) == 0 && more.Shares == nil {
		r.setMore(more)
		return
	}
	shares := more.shares()
	if c.Slots != 0 {
		s.join(sp, &shares, c)
	}
	if len(d.Units) > 0 {
		shares.Units = named(shares.Units, d.Units)
		s.assign(&shares, more.Rests, c)
	}
	more.Shares = &shares
	r.setMore(more)
}

// join counts a lease on some slots.
func (s *State) join(sp *space, shares *Shares, c *Claim) {
	sp.sharers.Set(sharer{c.Resource, c.Token, c.ID})
	shares.used += int(c.Slots)
	shares.holders++
	shares.hasten(s.deadlineOf(sp, c))
}

// hasten notes that a lease may end at a moment.
func (shares *Shares) hasten(at Time) {
	if at != 0 && (shares.soonest == 0 || at < shares.soonest) {
		shares.soonest = at
	}
}

// vacate takes a lease that ends off its resource.
func (s *State) vacate(sp *space, r *Resource, more *More, c *Claim) {
	if c.Slots == 0 {
		r.Claim = ""
	}
	if more.Shares == nil {
		return
	}
	shares := *more.Shares
	if c.Slots != 0 {
		sp.sharers.Delete(sharer{c.Resource, c.Token, c.ID})
		shares.used -= int(c.Slots)
		shares.holders--
		if shares.holders == 0 {
			shares.soonest = 0
		}
	}
	if len(shares.Units) > 0 {
		shares.Units = slices.Clone(shares.Units)
		for i := range shares.Units {
			if shares.Units[i].lease == c.ID {
				shares.Units[i].lease, shares.Units[i].Freed = "", s.now
			}
		}
		shares.Units = named(shares.Units, sp.definition(r.Path).Units)
	}
	more.Shares = &shares
}

// named brings units in line with the names that a definition has by now: what is
// remembered of a name stays, and a name that is gone stays while a lease has it. It
// returns a list of its own.
func named(units []Unit, names []string) []Unit {
	if slices.EqualFunc(units, names, func(u Unit, name string) bool { return u.Name == name }) {
		return slices.Clone(units)
	}
	var others btree.Map[string, Unit] // that are not in the list yet
	for _, unit := range units {
		others.Set(unit.Name, unit)
	}
	list := make([]Unit, 0, len(names))
	for _, name := range names {
		unit, known := others.Delete(name)
		if !known {
			unit = Unit{Name: name}
		}
		list = append(list, unit)
	}
	for _, unit := range units {
		if _, left := others.Get(unit.Name); left && unit.lease != "" {
			list = append(list, unit)
		}
	}
	return list
}

// restingUnits returns the names of the units that rest.
func restingUnits(rests []Rest) (names btree.Set[string]) {
	for _, rest := range rests {
		for _, name := range rest.Units {
			names.Insert(name)
		}
	}
	return names
}

// assign gives a lease its units: those that its holder had last, since that is where
// its data may still be; then those that nobody had, then the longest free ones.
func (s *State) assign(shares *Shares, rests []Rest, c *Claim) {
	var free []int
	resting := restingUnits(rests)
	for i, unit := range shares.Units {
		if (unit.lease == "" || s.plants(UnitTwice)) && !resting.Contains(unit.Name) {
			free = append(free, i)
		}
	}
	if c.Slots != 0 {
		free = best(free, int(c.Slots), func(i, j int) bool { return preferred(&shares.Units[i], &shares.Units[j], c.Holder) < 0 })
	}
	t := c.terms()
	t.Units = nil
	for _, i := range free {
		shares.Units[i].lease, shares.Units[i].Holder = c.ID, c.Holder
		t.Units = append(t.Units, shares.Units[i].Name)
	}
	c.setTerms(t)
}

// best returns the first n of a list, which is in order, by another order, and again in
// the order that they had. Few are looked for one by one: mostly it is one.
func best(list []int, n int, better func(i, j int) bool) []int {
	if n >= len(list) {
		return list
	}
	if few := 4; n > few {
		slices.SortFunc(list, func(i, j int) int {
			switch {
			case better(i, j):
				return -1
			case better(j, i):
				return 1
			}
			return i - j
		})
		slices.Sort(list[:n])
		return list[:n]
	}
	for k := range n {
		first := k
		for at := k + 1; at < len(list); at++ {
			if better(list[at], list[first]) || list[at] < list[first] && !better(list[first], list[at]) {
				first = at
			}
		}
		list[k], list[first] = list[first], list[k]
	}
	slices.Sort(list[:n])
	return list[:n]
}

// preferred compares two units for a holder; below zero if a is better.
func preferred(a, b *Unit, holder string) int {
	mine, yours := a.Freed != 0 && a.Holder == holder, b.Freed != 0 && b.Holder == holder
	switch {
	case mine && !yours:
		return -1
	case yours && !mine:
		return 1
	case a.Freed < b.Freed:
		return -1
	case a.Freed > b.Freed:
		return 1
	}
	return 0
}

// setResource stores a resource and keeps account of those that nobody has or
// wants, of which only so many are remembered, and of a rest that somebody waits
// for. What was agreed on its capacity is forgotten when nobody needs it any more.
func (s *State) setResource(sp *space, r *Resource) {
	idle := !r.held() && r.Waiting == 0
	if r.More != nil && r.More.Shares != nil && idle {
		more := *r.More
		shares := *more.Shares
		shares.Capacity = 0
		if more.Shares = &shares; len(shares.Units) == 0 {
			more.Shares = nil
		}
		r.setMore(more)
	}
	if at := r.resumes(); r.Waiting > 0 && at != 0 {
		if r.timer == nil {
			r.timer = newTimer(dueResource, sp, r.Path)
		}
		s.due.Set(r.timer, at)
	} else if r.timer != nil {
		s.due.Set(r.timer, 0)
		r.timer = nil
	}
	switch {
	case idle && r.Idle == 0:
		s.idleSeq++
		r.Idle = s.idleSeq
		s.idle.Set(r.Idle, place{sp.name, r.Path})
	case !idle && r.Idle != 0:
		s.idle.Delete(r.Idle)
		r.Idle = 0
	}
	sp.resources.Set(r.Path, r)
}

package kernel

import (
	"slices"

	"github.com/leasehold/leasehold/internal/btree"
)

// A Unit is a slot with a name.
type Unit struct {
	Name   string
	Holder string // who has it, or had it last
	Freed  Time   // 0 if nobody had it yet
	lease  string // the id of the lease that has it
}

// named returns a new list of units that follows the names that a definition has by now. What
// is remembered of a name stays; a name that was removed stays as long as a lease has it, since
// its holder is using the thing.
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

// assign gives a lease its units: first those that its holder had last, because its data may
// still be there; then those that nobody had; then those that have been free longest.
func (s *State) assign(shares *Shares, rests []Rest, c *Claim) {
	var free []int
	resting := restingUnits(rests)
	for i, unit := range shares.Units {
		if unit.lease == "" && !resting.Contains(unit.Name) {
			free = append(free, i)
		}
	}
	if c.Slots != 0 {
		free = best(free, int(c.Slots), func(i, j int) bool {
			return preferred(&shares.Units[i], &shares.Units[j], c.Holder) < 0
		})
	}
	t := c.terms()
	t.Units = nil
	for _, i := range free {
		shares.Units[i].lease, shares.Units[i].Holder = c.ID, c.Holder
		t.Units = append(t.Units, shares.Units[i].Name)
	}
	c.setTerms(t)
}

// best returns the n best of a list by another order, in the order that the list itself has. A
// few are picked one by one, since mostly it is one; more are sorted. Ties go to the earlier
// position either way, so both ways pick the same.
func best(list []int, n int, better func(i, j int) bool) []int {
	if n >= len(list) {
		return list
	}
	// Picking n one by one costs n times the length of the list; beyond a few, sorting is
	// cheaper.
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

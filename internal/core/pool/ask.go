package pool

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// An Ask is what one request wants of a pool.
type Ask struct {
	N      int // how many units
	Where  Selector
	Spread bool     // they may be on several hosts
	Units  []string // these and no others; Where and Spread are then empty
	Sorted []string // the same in their order
	All    bool     // an exclusive lease: everything that there is
	Adopts []int    // processes that may be on the units, since they are the request's own

	sum uint64 // by Sum; 0: nobody asked for it
}

// Wants reports whether a unit is one that a request asks for, taken or not.
func (a *Ask) Wants(u *Unit) bool {
	switch {
	case a.All:
		return true
	case len(a.Units) > 0:
		_, named := slices.BinarySearch(a.Sorted, u.Name)
		return named
	}
	return a.Where.Matches(u)
}

// OneHost reports whether all units have to be on one host.
func (a *Ask) OneHost() bool { return !a.Spread && !a.All && len(a.Units) == 0 }

// names returns the names of the only units that a request may want, in their order, if it says which these are.
func (a *Ask) names() (names []string, said bool) {
	if len(a.Units) > 0 {
		return a.Sorted, true
	}
	return a.Where.among(KeyUnit)
}

// list returns the units of a host among which are all that a request wants, by name.
func (a *Ask) list(h *Host) []*Unit {
	names, said := a.names()
	if !said {
		return h.list
	}
	var list []*Unit
	for _, name := range names {
		if at, here := place(h.list, name); here {
			list = append(list, h.list[at])
		}
	}
	return list
}

// Sum prepares a request to be compared with many others. It may name 64 KiB of units, and one that waits is compared
// whenever somebody looks at the queue.
func (a *Ask) Sum() *Ask {
	a.sum = a.hash()
	return a
}

// key is the same for requests that are the same, and mostly another one for others.
func (a *Ask) key() uint64 {
	if a.sum != 0 {
		return a.sum
	}
	return a.hash()
}

func (a *Ask) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, a.N, a.Spread, a.All, a.Adopts, a.Where.text)
	for _, unit := range a.Units {
		fmt.Fprint(h, "\x00", unit)
	}
	return h.Sum64()
}

// same reports whether two requests ask for the same units, from any holder.
func (a *Ask) same(b *Ask) bool {
	if a.sum != 0 && b.sum != 0 && a.sum != b.sum {
		return false
	}
	return a.N == b.N && a.Spread == b.Spread && a.All == b.All && a.Where.text == b.Where.text &&
		slices.Equal(a.Units, b.Units) && slices.Equal(a.Adopts, b.Adopts)
}

// Repeats reports whether somebody before asked for the very same, and did not get it.
func (l *Line) Repeats(a *Ask) bool {
	if slices.ContainsFunc(l.kept, func(k keeper) bool { return !k.fixed && k.ask.same(a) }) {
		return true
	}
	if l.nothing.Len() == 0 {
		return false
	}
	alike, _ := l.nothing.Get(a.key())
	return slices.ContainsFunc(alike, a.same)
}

// list is that of the request, and counts what it takes.
func (l *Line) list(a *Ask, h *Host) []*Unit {
	l.searches(a)
	return a.list(h)
}

// searches counts a search for each unit that a request names.
func (l *Line) searches(a *Ask) {
	names, _ := a.names()
	l.Looked += lookedPerSearch * len(names)
}

// lookedPerSearch is how many units are looked at in the time that it takes to find one by its name.
const lookedPerSearch = 16

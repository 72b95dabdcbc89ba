package pool

import (
	"fmt"
	"slices"
	"strings"
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

// text says what a request asks for: requests that are the same have the same text.
func (a *Ask) text() string {
	return fmt.Sprint(a.N, a.Spread, a.All, a.Adopts, len(a.Units)) + a.Where.text + "\x00" +
		strings.Join(a.Units, "\x00")
}

// same reports whether two requests ask for the same units, from any holder.
func (a *Ask) same(b *Ask) bool {
	return a.N == b.N && a.Spread == b.Spread && a.All == b.All && a.Where.text == b.Where.text &&
		slices.Equal(a.Units, b.Units) && slices.Equal(a.Adopts, b.Adopts)
}

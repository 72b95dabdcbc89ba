package pool

import (
	"cmp"
	"slices"
)

// Plan returns units that a request could have at another time, by host and name; nil if there are too few. worth says
// how well a unit suits: the smaller the better, and below zero not at all. Of several hosts it is the one whose units
// suit best; then the one with the fewest to spare.
func (t *Table) Plan(pool string, a *Ask, worth func(*Unit) int) []*Unit {
	var chosen *planned
	all := &planned{}
	t.Hosts(pool, func(h *Host) bool {
		here := all
		if a.OneHost() {
			here = &planned{}
		}
		for _, u := range h.list {
			if w := worth(u); u.Fit() && a.Wants(u) && w >= 0 {
				here.units = append(here.units, plannedUnit{u, w})
			}
		}
		if a.OneHost() && here.settle(a.N) && (chosen == nil || here.before(chosen)) {
			chosen = here
		}
		return true
	})
	if !a.OneHost() && all.settle(a.N) {
		chosen = all
	}
	if chosen == nil {
		return nil
	}
	units := make([]*Unit, a.N)
	for i := range units {
		units[i] = chosen.units[i].Unit
	}
	slices.SortFunc(units, func(u, v *Unit) int {
		return cmp.Or(cmp.Compare(u.Host, v.Host), cmp.Compare(u.Name, v.Name))
	})
	return units
}

// A planned is the units of one host, or of all, that a request could have.
type planned struct {
	units []plannedUnit
	worth int // of the best, together
}

type plannedUnit struct {
	*Unit
	worth int
}

// settle puts the best units first, and reports whether there are enough.
func (p *planned) settle(n int) bool {
	if len(p.units) < n {
		return false
	}
	slices.SortFunc(p.units, func(u, v plannedUnit) int {
		return cmp.Or(u.worth-v.worth, cmp.Compare(u.Host, v.Host), cmp.Compare(u.Name, v.Name))
	})
	for _, u := range p.units[:n] {
		p.worth += u.worth
	}
	return true
}

func (p *planned) before(other *planned) bool {
	return cmp.Or(p.worth-other.worth, len(p.units)-len(other.units)) < 0
}

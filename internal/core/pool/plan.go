package pool

import (
	"cmp"
	"slices"
)

// Plan returns units that a request could have at another time, by host and name; nil if there are too few. worth says
// how well a unit suits: Suits, Serves, or -1 for not at all. Of several hosts it is the one whose units
// suit best; then the one with the fewest to spare.
func (t *Table) Plan(pool string, a *Ask, worth func(*Unit) int) []*Unit {
	var chosen *planned
	all := &planned{}
	l := Line{table: t, pool: pool}
	l.hosts(a, func(h *Host) bool {
		here := all
		if a.OneHost() {
			here = &planned{}
		}
		var last match
		for _, u := range l.list(a, h) {
			if u.Fit() && l.wants(a, u, &last) {
				here.add(u, worth(u))
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
	units := chosen.best(a.N)
	slices.SortFunc(units, func(u, v *Unit) int {
		return cmp.Or(cmp.Compare(u.Host, v.Host), cmp.Compare(u.Name, v.Name))
	})
	return units
}

// The values of a unit for a plan, the best first.
const (
	Suits = iota
	Serves
	worths
)

// A planned is the units of one host, or of all, that a request could have: by how well they suit, and then by host
// and name.
type planned struct {
	units [worths][]*Unit
	worth int // of the best, together
}

func (p *planned) add(u *Unit, worth int) {
	if worth >= 0 {
		p.units[worth] = append(p.units[worth], u)
	}
}

func (p *planned) size() int { return len(p.units[Suits]) + len(p.units[Serves]) }

// settle values the best units, and reports whether there are enough.
func (p *planned) settle(n int) bool {
	p.worth = max(0, n-len(p.units[Suits]))
	return p.size() >= n
}

// best returns the best units.
func (p *planned) best(n int) []*Unit {
	return slices.Concat(p.units[Suits], p.units[Serves])[:n:n]
}

func (p *planned) before(other *planned) bool {
	return cmp.Or(p.worth-other.worth, p.size()-other.size()) < 0
}

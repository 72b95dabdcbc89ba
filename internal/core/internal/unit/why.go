package unit

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// What those are told who do not get units of a pool at once.

// limitText says which limit a request would exceed, and who has how much of it: a label or a prefix stands for all
// those that it counts together.
func limitText(c *kernel.Claim, limit *leasehold.UnitLimit, has int) string {
	who := "it"
	switch key, _ := countedBy(limit, c); limit.By {
	case leasehold.EachValue:
		who = fmt.Sprintf("%s=%s", limit.Name, key)
	case leasehold.EachPrefix:
		who = limit.Name + "…"
	case leasehold.EachHolder:
		who = c.Holder
	}
	return fmt.Sprintf("is over the limit %s: %s has %d units, and this asks for %d more", pool.LimitText(*limit), who,
		has, c.Slots)
}

// NeverEnough says why a pool could not satisfy a request even if all its units were free.
func (p *pools) NeverEnough(path string, ask *pool.Ask, most int) string {
	for _, name := range ask.Units {
		if u := p.units.Get(path, name); u == nil || u.Removed {
			return fmt.Sprintf("asks for unit %q, which is not there", name)
		}
	}
	return fmt.Sprintf("asks for %s: there are at most %d", wanted(ask), most)
}

// obstacle says why a unit that a request names is not granted although nobody has it; empty if that is not so.
func (l *line) obstacle(ask *pool.Ask) string {
	for _, name := range ask.Units {
		u := l.pools.units.Get(l.path, name)
		switch {
		case u == nil || u.Lease != "":
		case u.Drained != "":
			return fmt.Sprintf("; %s is drained: %s", name, u.Drained)
		case u.Unfit != "":
			return fmt.Sprintf("; %s is unfit: %s", name, u.Unfit)
		case u.Taken():
			p := u.Strangers()[0]
			return fmt.Sprintf("; %s is taken without a lease by process %d of %s (%s)", name, p.PID, p.User, p.Name)
		}
	}
	return ""
}

// wanted says what a request asks for.
func wanted(ask *pool.Ask) string {
	if len(ask.Units) > 0 {
		return "unit " + kernel.FirstFew(ask.Units)
	}
	text := fmt.Sprintf("%d units", ask.N)
	if ask.N == 1 {
		text = "1 unit"
	}
	if !ask.Spread && ask.N > 1 {
		text += " on one host"
	}
	if where := ask.Where.String(); where != "" {
		text += " with " + where
	}
	return text
}

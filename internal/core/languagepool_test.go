package core_test

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Units are written as name:label=value:label=value, and ! with a reason at the end of one that is unfit.

func (p *phrase) list(name string) []string {
	if text := p.option(name, ""); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

func (p *phrase) setUnits() core.Command {
	c := &core.SetUnits{
		Resource: p.word("resource"), Host: p.option("host", ""), By: p.option("by", ""), Reason: p.option("reason", ""),
		Namespace: p.namespace(), Request: p.request(),
	}
	for _, text := range p.list("units") {
		var unit core.HostUnit
		text, unit.Unfit, _ = strings.Cut(text, "!")
		words := strings.Split(text, ":")
		unit.Name = words[0]
		for _, label := range words[1:] {
			key, value, _ := strings.Cut(label, "=")
			unit.Labels = append(unit.Labels, leasehold.Label{Key: key, Value: value})
		}
		c.Units = append(c.Units, unit)
	}
	return c
}

func writeUnits(c *core.SetUnits) string {
	var units []string
	for _, u := range c.Units {
		text := u.Name
		for _, l := range u.Labels {
			text += ":" + l.Key + "=" + l.Value
		}
		if u.Unfit != "" {
			text += "!" + u.Unfit
		}
		units = append(units, text)
	}
	return sentence("set-units", quote(c.Resource), option("host", c.Host), option("units", strings.Join(units, ",")), option("by", c.By),
		option("reason", c.Reason), common(c.Namespace, c.Request))
}

// selection reads where=, spread and on=, the names of units.
func (p *phrase) selection() *leasehold.Select {
	s := leasehold.Select{Where: p.option("where", ""), Spread: p.flag("spread"), Units: p.list("on")}
	if s.Where == "" && !s.Spread && s.Units == nil {
		return nil
	}
	return &s
}

func writeSelect(s *leasehold.Select) string {
	if s == nil {
		return ""
	}
	return option("where", s.Where) + " " + flagged("spread", s.Spread) + " " + option("on", strings.Join(s.Units, ","))
}

func writeLimits(limits []leasehold.UnitLimit) string {
	var texts []string
	for _, l := range limits {
		texts = append(texts, pool.LimitText(l))
	}
	return option("limits", strings.Join(texts, ","))
}

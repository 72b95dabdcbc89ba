package kernel_test

import (
	"fmt"
	"strconv"
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

// The use of a unit is written as name:percent:memory, then :pid/user/name/lease for each process, and ! with a reason at the
// end of one that is unfit.
func (p *phrase) reportUse() core.Command {
	c := &core.ReportUse{Resource: p.word("resource"), Host: p.option("host", ""), By: p.option("by", ""), Namespace: p.namespace(), Request: p.request()}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			p.wrong("units= has a number that is none: %v", err)
		}
		return n
	}
	for _, text := range p.list("units") {
		var unit core.UnitReport
		text, unit.Unfit, _ = strings.Cut(text, "!")
		words := strings.Split(text, ":")
		if unit.Name = words[0]; len(words) > 1 {
			unit.Percent = number(words[1])
		}
		if len(words) > 2 {
			unit.Memory = number(words[2])
			for _, process := range words[3:] {
				parts := strings.Split(process+"///", "/")
				unit.Processes = append(unit.Processes, core.UnitProcess{PID: number(parts[0]), User: parts[1], Name: parts[2], Lease: parts[3]})
			}
		}
		c.Units = append(c.Units, unit)
	}
	return c
}

func writeUse(c *core.ReportUse) string {
	var units []string
	for _, u := range c.Units {
		text := fmt.Sprintf("%s:%d:%d", u.Name, u.Percent, u.Memory)
		for _, p := range u.Processes {
			text += fmt.Sprintf(":%d/%s/%s/%s", p.PID, p.User, p.Name, p.Lease)
		}
		if u.Unfit != "" {
			text += "!" + u.Unfit
		}
		units = append(units, text)
	}
	return sentence("use", quote(c.Resource), option("host", c.Host), option("units", strings.Join(units, ",")), option("by", c.By), common(c.Namespace, c.Request))
}

package command

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// SetUnits says which units of a pool one host has. Those that are missing from the list are removed, or stay until
// their lease ends; units of other hosts are not touched. The first unit makes a resource a pool.
type SetUnits struct {
	Namespace string
	Resource  string
	Host      string // empty: the units belong to no host
	Units     []HostUnit
	By        string
	Reason    string
	Request   Request
}

// A HostUnit is a unit as its host describes it.
type HostUnit struct {
	Name   string
	Labels leasehold.Labels
	Unfit  string // why it is not to be granted; empty: it may be
}

// Drain keeps units from being granted, whatever their host says; or, without a reason why, lets them be granted again.
// Who has one keeps it.
type Drain struct {
	Namespace string
	Resource  string
	Units     []string
	Why       string
	By        string
	Request   Request
}

// MaxSelected is how many units a request may name.
const MaxSelected = 64

func (c *SetUnits) space() string    { return c.Namespace }
func (c *SetUnits) request() Request { return c.Request }
func (c *SetUnits) subject() string  { return "set units " + c.Resource }
func (c *Drain) space() string       { return c.Namespace }
func (c *Drain) request() Request    { return c.Request }
func (c *Drain) subject() string     { return "drain " + c.Resource }

func (c *SetUnits) Validate() error {
	err := firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("host", c.Host),
		text("by", c.By), text("reason", c.Reason), c.Request.validate(), noPattern(c.Resource, "it has no units"))
	if err == nil && len(c.Units) > leasehold.MaxHostUnits {
		err = invalid("there are %d units: one host has at most %d", len(c.Units), leasehold.MaxHostUnits)
	}
	var seen btree.Set[string]
	for i := range c.Units {
		if err != nil {
			return err
		}
		u := &c.Units[i]
		if err = u.validate(); err == nil && seen.Contains(u.Name) {
			err = invalid("unit %q is named twice", u.Name)
		}
		seen.Insert(u.Name)
	}
	return err
}

func (u *HostUnit) validate() error {
	if err := firstError(name("unit", u.Name), labels(u.Labels), text("unfit", u.Unfit)); err != nil {
		return err
	}
	size := 0
	for _, l := range u.Labels {
		if l.Key == pool.KeyHost || l.Key == pool.KeyUnit {
			return invalid("unit %q has the label %s, which every unit has by itself: leave it out", u.Name, l.Key)
		}
		size += len(l.Key) + len(l.Value)
	}
	if size > leasehold.MaxUnitLabels {
		return invalid("the labels of unit %q have %d bytes: at most %d are allowed", u.Name, size,
			leasehold.MaxUnitLabels)
	}
	return nil
}

func (c *Drain) Validate() error {
	if len(c.Units) == 0 || len(c.Units) > leasehold.MaxHostUnits {
		return invalid("%d units are named: 1 to %d are allowed", len(c.Units), leasehold.MaxHostUnits)
	}
	for _, u := range c.Units {
		if err := name("unit", u); err != nil {
			return err
		}
	}
	return firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("why", c.Why),
		text("by", c.By), c.Request.validate())
}

// validateSelect checks which units one item of a request asks for.
func (item Item) validateSelect() error {
	s := item.Select
	if s == nil {
		return nil
	}
	if _, err := pool.ParseSelector(s.Where); err != nil {
		return invalid("where %q cannot be read: %v", s.Where, err)
	}
	for i, u := range s.Units {
		if err := name("unit", u); err != nil {
			return err
		}
		if slices.Contains(s.Units[:i], u) {
			return invalid("unit %q is asked for twice", u)
		}
	}
	switch {
	case item.Slots == 0:
		return invalid("units are selected, and it is not said how many: say so with slots")
	case len(s.Units) > MaxSelected:
		return invalid("%d units are named: at most %d are allowed", len(s.Units), MaxSelected)
	case len(s.Units) > 0 && (s.Where != "" || s.Spread):
		return invalid("units are named, so there is nothing to select: leave where and spread out")
	case len(s.Units) > 0 && len(s.Units) != item.Slots:
		return invalid("%d units are named, and %d slots are asked for: say as many slots as units", len(s.Units),
			item.Slots)
	}
	return nil
}

// Selects reports whether a request selects units.
func (c *Acquire) Selects() bool {
	return c.Select != nil || slices.ContainsFunc(c.Also, func(item Item) bool { return item.Select != nil })
}

// unitLimits checks limits on how many units somebody may have.
func unitLimits(limits []leasehold.UnitLimit) error {
	if len(limits) > leasehold.MaxUnitLimits {
		return invalid("there are %d limits of units: at most %d are allowed", len(limits), leasehold.MaxUnitLimits)
	}
	for i, l := range limits {
		switch {
		case l.By > leasehold.EachPrefix:
			return invalid("unknown kind of limit; known are holder, label and prefix")
		case (l.Name == "") != (l.By == leasehold.EachHolder):
			return invalid("limit %s: a label or a prefix has a name, and holder has none", pool.LimitText(l))
		case l.Most < 1 || l.Most > leasehold.MaxPoolUnits:
			return invalid("limit %s is out of range: 1 to %d units are allowed", pool.LimitText(l),
				leasehold.MaxPoolUnits)
		}
		if err := text("limit", l.Name); err != nil {
			return err
		}
		for _, other := range limits[:i] {
			if other.By == l.By && other.Name == l.Name {
				return invalid("limit %s stands twice", pool.LimitText(l))
			}
		}
	}
	return nil
}

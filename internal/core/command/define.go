package command

import (
	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
)

// Define sets what holds for a resource, or for all under a prefix. Slots follow it at
// once, also those of resources that are held; the rest is for leases that are asked
// for from now on.
type Define struct {
	Namespace  string
	Definition leasehold.Definition
	By         string
	Reason     string
	Request    Request
}

// Undefine takes a definition away.
type Undefine struct {
	Namespace string
	Path      string
	By        string
	Reason    string
	Request   Request
}

func (c *Define) space() string      { return c.Namespace }
func (c *Define) request() Request   { return c.Request }
func (c *Define) subject() string    { return "define " + c.Definition.Path }
func (c *Undefine) space() string    { return c.Namespace }
func (c *Undefine) request() Request { return c.Request }
func (c *Undefine) subject() string  { return "undefine " + c.Path }

func (c *Define) Validate() error {
	return firstError(name("namespace", c.Namespace), definition(&c.Definition), text("by", c.By),
		text("reason", c.Reason), c.Request.validate())
}

func (c *Undefine) Validate() error {
	return firstError(name("namespace", c.Namespace), name("path", c.Path), text("by", c.By), text("reason", c.Reason),
		c.Request.validate())
}

// definition checks what a definition says, not whether the resources that exist now fit: it
// may well come before them.
func definition(d *leasehold.Definition) error {
	switch {
	case d.Revision != 0:
		return invalid("the revision of a definition is for the server to say")
	case d.Capacity < 0 || d.Capacity > leasehold.MaxCapacity:
		return invalid("capacity %d is out of range: 1 to %d are allowed", d.Capacity, leasehold.MaxCapacity)
	case len(d.Units) > 0 && d.Capacity != 0 && d.Capacity != len(d.Units):
		return invalid("%d units make a capacity of %d, not %d: leave the capacity out", len(d.Units), len(d.Units),
			d.Capacity)
	case d.DefaultTTL != 0 && d.LargestTTL != 0 && d.DefaultTTL > d.LargestTTL:
		return invalid("the default ttl %v is longer than the largest, %v", d.DefaultTTL, d.LargestTTL)
	case d.Unclean > leasehold.AwaitAcknowledgement:
		return invalid("unknown consequence of an unclean end; known are allow, warn and acknowledge")
	}
	return firstError(
		name("path", d.Path), units(d.Units), optionalTTL(d.DefaultTTL), optionalTTL(d.LargestTTL),
		within("hold limit", d.HoldLimit, leasehold.MaxHold), within("grace", d.Grace, leasehold.MaxGrace),
		within("expected hold", d.Expected, leasehold.MaxHold),
	)
}

// units checks the names of units. Two units with one name could not be told apart by those who
// hold them.
func units(names []string) error {
	if len(names) > leasehold.MaxUnits {
		return invalid("there are %d units: at most %d are allowed", len(names), leasehold.MaxUnits)
	}
	size := 0
	var seen btree.Set[string]
	for _, n := range names {
		if err := name("unit", n); err != nil {
			return err
		}
		if seen.Contains(n) {
			return invalid("unit %q stands twice", n)
		}
		seen.Insert(n)
		size += len(n)
	}
	if size > leasehold.MaxUnitNames {
		return invalid("the names of the units have %d bytes: at most %d are allowed", size, leasehold.MaxUnitNames)
	}
	return nil
}

package command

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
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

	// Fields are those that change; the others stay as they are. 0: all of them.
	Fields DefinitionFields
	// KeepSlots refuses to drop units, or to leave fewer slots than are taken or waited for.
	KeepSlots bool
	// IfRevision is the revision of the definition that is to be changed; 0: any, or none.
	IfRevision leasehold.Revision
}

// DefinitionFields is a set of fields of a definition.
type DefinitionFields uint64

// The fields. Wire formats number them: add at the end only.
const (
	FieldSlots DefinitionFields = 1 << iota // capacity and units, of which one replaces the other
	FieldDefaultTTL
	FieldLargestTTL
	FieldHoldLimit
	FieldGrace
	FieldExpected
	FieldUnclean
	FieldLimits
	FieldIdle
	FieldIdleRelease
	FieldOnReservation
	FieldBackfill

	allFields = 1<<iota - 1
)

// IsChange reports whether a define does more than to replace the plain parts of a definition.
func (c *Define) IsChange() bool {
	return c.Fields != 0 || c.KeepSlots || c.IfRevision != 0 || len(c.Definition.Limits) > 0 ||
		c.Definition.Idle != 0 || c.Definition.IdleRelease != 0 ||
		c.Definition.OnReservation != 0 || c.Definition.Backfill
}

// Over returns the definition that a command makes of the one that was there; nil: there was none.
func (c *Define) Over(before *leasehold.Definition) leasehold.Definition {
	if c.Fields == 0 {
		return c.Definition
	}
	d := leasehold.Definition{Path: c.Definition.Path}
	if before != nil {
		d = *before
		d.Revision = 0
	}
	if c.Fields&FieldSlots != 0 {
		d.Capacity, d.Units = c.Definition.Capacity, c.Definition.Units
	}
	if c.Fields&FieldDefaultTTL != 0 {
		d.DefaultTTL = c.Definition.DefaultTTL
	}
	if c.Fields&FieldLargestTTL != 0 {
		d.LargestTTL = c.Definition.LargestTTL
	}
	if c.Fields&FieldHoldLimit != 0 {
		d.HoldLimit = c.Definition.HoldLimit
	}
	if c.Fields&FieldGrace != 0 {
		d.Grace = c.Definition.Grace
	}
	if c.Fields&FieldExpected != 0 {
		d.Expected = c.Definition.Expected
	}
	if c.Fields&FieldUnclean != 0 {
		d.Unclean = c.Definition.Unclean
	}
	if c.Fields&FieldLimits != 0 {
		d.Limits = c.Definition.Limits
	}
	if c.Fields&FieldIdle != 0 {
		d.Idle = c.Definition.Idle
	}
	if c.Fields&FieldIdleRelease != 0 {
		d.IdleRelease = c.Definition.IdleRelease
	}
	if c.Fields&FieldOnReservation != 0 {
		d.OnReservation = c.Definition.OnReservation
	}
	if c.Fields&FieldBackfill != 0 {
		d.Backfill = c.Definition.Backfill
	}
	return d
}

// SameDefinition compares all but the revision.
func SameDefinition(a, b *leasehold.Definition) bool {
	return a.Path == b.Path && a.Capacity == b.Capacity && slices.Equal(a.Units, b.Units) &&
		a.DefaultTTL == b.DefaultTTL && a.LargestTTL == b.LargestTTL && a.HoldLimit == b.HoldLimit &&
		a.Grace == b.Grace && a.Expected == b.Expected && a.Unclean == b.Unclean && slices.Equal(a.Limits, b.Limits) &&
		a.Idle == b.Idle && a.IdleRelease == b.IdleRelease &&
		a.OnReservation == b.OnReservation && a.Backfill == b.Backfill
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
	return firstError(name("namespace", c.Namespace), CheckDefinition(&c.Definition), c.validateFields(),
		text("by", c.By), text("reason", c.Reason), c.Request.validate())
}

func (c *Undefine) Validate() error {
	return firstError(name("namespace", c.Namespace), name("path", c.Path), text("by", c.By), text("reason", c.Reason),
		c.Request.validate())
}

// validateFields refuses fields that are unknown, and values of fields that are not to change.
func (c *Define) validateFields() error {
	if c.Fields&^allFields != 0 {
		return invalid("unknown field of a definition")
	}
	if named := c.Over(nil); !SameDefinition(&named, &c.Definition) {
		return invalid("a definition has a value for a field that is not to change")
	}
	return nil
}

// CheckDefinition checks what a definition says, not whether the resources that exist now fit: it
// may well come before them.
func CheckDefinition(d *leasehold.Definition) error {
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
	case d.OnReservation > leasehold.EndAtStart:
		return invalid("unknown consequence of a reservation; known are wait, warn and end")
	}
	return firstError(
		name("path", d.Path), units(d.Units), optionalTTL(d.DefaultTTL), optionalTTL(d.LargestTTL),
		within("hold limit", d.HoldLimit, leasehold.MaxHold), within("grace", d.Grace, leasehold.MaxGrace),
		within("expected hold", d.Expected, leasehold.MaxHold), unitLimits(d.Limits),
		within("idle", d.Idle, leasehold.MaxHold), within("idle release", d.IdleRelease, leasehold.MaxHold),
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
			return invalid("unit %q is named twice", n)
		}
		seen.Insert(n)
		size += len(n)
	}
	if size > leasehold.MaxUnitNames {
		return invalid("the names of the units have %d bytes: at most %d are allowed", size, leasehold.MaxUnitNames)
	}
	return nil
}

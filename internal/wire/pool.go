package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Pools: units on hosts, what is selected of them, and limits.

// limitsBy are the ways in which a limit counts.
var limitsBy = choice{uint8(leasehold.EachHolder), uint8(leasehold.EachPrefix)}

// The least that a limit and a process of a stranger take.
const (
	minLimit    = 3
	minStranger = 3
)

// selection is which units one resource of an acquire asks for, if it says so.
func (c *codec) selection(v **leasehold.Select) {
	if present(c, "select", v) {
		c.text("where", &(*v).Where)
		c.flag("spread", &(*v).Spread)
		c.names("units", &(*v).Units)
	}
}

// unitLimits is a list of limits in what is only written if there are some.
func (c *codec) unitLimits(v *[]leasehold.UnitLimit) {
	if c.anyLimits(v); len(*v) == 0 && c.fault == nil {
		c.fail("limits", "there are none, and then this is of another kind")
	}
}

// anyLimits is a list of limits, which may be empty.
func (c *codec) anyLimits(v *[]leasehold.UnitLimit) {
	list(c, "limits", v, minLimit, func(l *leasehold.UnitLimit) {
		c.oneOf("by", (*uint8)(&l.By), limitsBy)
		c.text("name", &l.Name)
		c.number("most", &l.Most)
	})
}

// hasIdle reports whether a definition says something about idle leases.
func hasIdle(d *leasehold.Definition) bool { return d.Idle != 0 || d.IdleRelease != 0 }

// idleRules is what a definition says about idle leases, with its limits.
func (c *codec) idleRules(v *leasehold.Definition) {
	c.anyLimits(&v.Limits)
	c.duration("idle", &v.Idle)
	c.duration("idle release", &v.IdleRelease)
	if !hasIdle(v) && c.fault == nil {
		c.fail("idle", "it is missing, and then this is of another kind")
	}
}

// poolPiece is a unit, how one is used, or until when the queue of a pool is calm.
func (c *codec) poolPiece(value any) {
	switch v := value.(type) {
	case *pool.Unit:
		c.poolUnit(v)
	case *core.UnitUse:
		c.unitUse(v)
	case *core.Calm:
		c.text("pool", &v.Pool)
		c.time("until", &v.Until)
	}
}

// poolUnit is a unit of a pool. Which lease has it is told by the lease.
func (c *codec) poolUnit(v *pool.Unit) {
	c.text("pool", &v.Pool)
	c.text("host", &v.Host)
	c.text("name", &v.Name)
	c.labels("labels", &v.Labels)
	c.text("unfit", &v.Unfit)
	c.text("drained", &v.Drained)
	c.flag("removed", &v.Removed)
	c.text("holder", &v.Holder)
	c.time("freed", &v.Freed)
}

// claimKind is recordKind for a claim.
func claimKind(v *core.Claim) uint64 {
	switch {
	case v.Terms != nil && v.Terms.Reservation != "":
		return kindReservedClaim
	case v.Terms != nil && v.Terms.Task:
		return kindTaskClaim
	case v.Terms != nil && v.Terms.Select != nil:
		return kindSelectClaim
	}
	return kindClaim
}

// unitUse is how a unit is used.
func (c *codec) unitUse(v *core.UnitUse) {
	c.text("pool", &v.Pool)
	c.text("unit", &v.Unit)
	c.time("at", &v.Use.At)
	c.number("percent", &v.Use.Percent)
	c.number("memory", &v.Use.Memory)
	list(c, "strangers", &v.Use.Strangers, minStranger, func(p *pool.Process) {
		c.number("pid", &p.PID)
		c.text("user", &p.User)
		c.text("name", &p.Name)
	})
	c.time("idle", &v.Use.Idle)
	c.time("asked", &v.Use.Asked)
	c.duration("busy", &v.Use.Busy)
	c.duration("unused", &v.Use.Unused)
}

// claimOf is a claim with what its kind adds.
func (c *codec) claimOf(kind uint64, v *core.Claim) {
	c.claim(v)
	switch kind {
	case kindSelectClaim:
		c.claimSelect(v)
	case kindTaskClaim:
		c.claimTask(v)
	case kindReservedClaim:
		c.claimReserved(v)
	}
}

// definitionOf is a definition with what its kind adds.
func (c *codec) definitionOf(kind uint64, v *leasehold.Definition) {
	switch c.definition(v); kind {
	case kindLimitsDefinition:
		c.unitLimits(&v.Limits)
	case kindIdleDefinition:
		c.idleRules(v)
	case kindStartDefinition:
		c.onReservation(v)
	case kindBackfillDefinition:
		c.backfill(v)
	}
}

// claimSelect is what a claim selected. Its terms came before, and are there: they have the selection.
func (c *codec) claimSelect(v *core.Claim) {
	if v.Terms == nil {
		c.fail("terms", "they are missing, and have what is selected")
		return
	}
	if c.selection(&v.Terms.Select); v.Terms.Select == nil && c.fault == nil {
		c.fail("select", "it is missing, and then the record is of another kind")
	}
}

// limitsOutcome is what the definition that an outcome shows adds to those of older levels.
func (c *codec) limitsOutcome(kind uint64, v *core.Outcome) {
	switch {
	case v.Answer.Definition == nil:
		c.fail("definition", "it is missing, and then the record is of another kind")
	case kind == kindBackfillOutcome:
		c.backfill(v.Answer.Definition)
	case kind == kindStartOutcome:
		c.onReservation(v.Answer.Definition)
	case kind == kindIdleOutcome:
		c.idleRules(v.Answer.Definition)
	default:
		c.unitLimits(&v.Answer.Definition.Limits)
	}
}

// definitionKind returns the kind of a definition: the oldest that has all its parts.
func definitionKind(d *leasehold.Definition) uint64 {
	switch {
	case d.Backfill:
		return kindBackfillDefinition
	case d.OnReservation != 0:
		return kindStartDefinition
	case hasIdle(d):
		return kindIdleDefinition
	case len(d.Limits) > 0:
		return kindLimitsDefinition
	}
	return kindDefinition
}

// definedOutcome returns the kind of an outcome that shows a definition, or none.
func definedOutcome(d *leasehold.Definition) uint64 {
	if d != nil {
		switch definitionKind(d) {
		case kindStartDefinition:
			return kindStartOutcome
		case kindBackfillDefinition:
			return kindBackfillOutcome
		case kindIdleDefinition:
			return kindIdleOutcome
		case kindLimitsDefinition:
			return kindLimitsOutcome
		}
	}
	return kindOutcome
}

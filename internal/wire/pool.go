package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Pools: units on hosts, what is selected of them, and limits.

// limitsBy are the ways in which a limit counts.
var limitsBy = choice{uint8(leasehold.EachHolder), uint8(leasehold.EachPrefix)}

// The least that a unit of a host and a limit take.
const (
	minHostUnit = 3
	minLimit    = 3
)

func (c *codec) setUnits(v *core.SetUnits) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("host", &v.Host)
	list(c, "units", &v.Units, minHostUnit, c.hostUnit)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
}

func (c *codec) hostUnit(v *core.HostUnit) {
	c.text("name", &v.Name)
	c.labels("labels", &v.Labels)
	c.text("unfit", &v.Unfit)
}

func (c *codec) drain(v *core.Drain) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.names("units", &v.Units)
	c.text("why", &v.Why)
	c.text("by", &v.By)
	c.request(&v.Request)
}

// selects is what an acquire selects of each of its resources. One that selects nothing is written as another kind.
func (c *codec) selects(v *core.Acquire) {
	c.selections(v)
	if !v.Selects() && c.fault == nil {
		c.fail("select", "it is missing, and then the command is of another kind")
	}
}

func (c *codec) selections(v *core.Acquire) {
	c.selection(&v.Select)
	for i := range v.Also {
		c.selection(&v.Also[i].Select)
	}
}

func (c *codec) selection(v **leasehold.Select) {
	if present(c, "select", v) {
		c.text("where", &(*v).Where)
		c.flag("spread", &(*v).Spread)
		c.names("units", &(*v).Units)
	}
}

func (c *codec) unitLimits(v *[]leasehold.UnitLimit) {
	list(c, "limits", v, minLimit, func(l *leasehold.UnitLimit) {
		c.oneOf("by", (*uint8)(&l.By), limitsBy)
		c.text("name", &l.Name)
		c.number("most", &l.Most)
	})
	if len(*v) == 0 && c.fault == nil {
		c.fail("limits", "there are none, and then this is of another kind")
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
	case v.Terms != nil && v.Terms.Task:
		return kindTaskClaim
	case v.Terms != nil && v.Terms.Select != nil:
		return kindSelectClaim
	}
	return kindClaim
}

// claimOf is a claim with what its kind adds.
func (c *codec) claimOf(kind uint64, v *core.Claim) {
	c.claim(v)
	switch kind {
	case kindSelectClaim:
		c.claimSelect(v)
	case kindTaskClaim:
		c.claimTask(v)
	}
}

// definitionOf is a definition with what its kind adds.
func (c *codec) definitionOf(kind uint64, v *leasehold.Definition) {
	if c.definition(v); kind == kindLimitsDefinition {
		c.unitLimits(&v.Limits)
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

func (c *codec) limitsOutcome(v *core.Outcome) {
	if v.Answer.Definition == nil {
		c.fail("definition", "it is missing, and then the record is of another kind")
		return
	}
	c.unitLimits(&v.Answer.Definition.Limits)
}

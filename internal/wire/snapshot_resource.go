package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Resources and definitions. What can be told from the leases (how many slots are used, which
// unit is whose) is not written.

// resource is a resource with what is remembered of it. Its place among the idle ones is
// written, because that decides which resource is forgotten next.
func (c *codec) resource(v *core.Resource) {
	c.text("path", &v.Path)
	c.text("claim", &v.Claim)
	c.number("waiting", &v.Waiting)
	c.unsigned("idle", &v.Idle)
	if present(c, "more", &v.More) {
		c.more(v.More)
	}
}

// The least that a rest, a name and a unit take.
const (
	minRest = 10
	minName = 1
	minUnit = 3
)

func (c *codec) more(v *core.More) {
	if present(c, "last", &v.Last) {
		c.ending(v.Last)
	}
	list(c, "rests", &v.Rests, minRest, c.rest)
	if present(c, "shares", &v.Shares) {
		c.number("capacity", &v.Shares.Capacity)
		list(c, "units", &v.Shares.Units, minUnit, c.unit)
	}
	if present(c, "usual", &v.Usual) {
		c.usual(v.Usual)
	}
}

func (c *codec) usual(v *core.Usual) {
	c.text("holds", &v.Holds)
	c.text("waits", &v.Waits)
	c.time("lost", &v.Lost)
	c.time("lost before", &v.LostBefore)
}

// kind is what was learned of a kind of leases.
func (c *codec) kind(v *core.Kind) {
	c.text("resource", &v.Resource)
	c.text("name", &v.Name)
	c.text("recent", (*string)(&v.Recent))
}

func (c *codec) rest(v *core.Rest) {
	c.unsigned32("slots", &v.Slots)
	c.names("units", &v.Units)
	c.time("until", &v.Until)
	// A rest always has the ending that it follows, so there is no flag for it.
	if !c.writing {
		v.After = new(core.Ending)
	}
	c.ending(v.After)
}

func (c *codec) unit(v *core.Unit) {
	c.text("name", &v.Name)
	c.text("holder", &v.Holder)
	c.time("freed", &v.Freed)
}

func (c *codec) names(field string, p *[]string) {
	list(c, field, p, minName, func(s *string) { c.text(field, s) })
}

func (c *codec) definition(v *leasehold.Definition) {
	c.text("path", &v.Path)
	c.number("capacity", &v.Capacity)
	c.names("units", &v.Units)
	c.duration("default ttl", &v.DefaultTTL)
	c.duration("largest ttl", &v.LargestTTL)
	c.duration("hold limit", &v.HoldLimit)
	c.duration("grace", &v.Grace)
	c.duration("expected", &v.Expected)
	c.oneOf("unclean", (*uint8)(&v.Unclean), uncleans)
	c.revision("revision", &v.Revision)
}

func (c *codec) ending(v *core.Ending) {
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.oneOf("how", (*uint8)(&v.How), hows)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.signed("wall", &v.Wall)
	c.text("foreign", &v.Foreign)
	c.duration("ttl", &v.TTL)
}

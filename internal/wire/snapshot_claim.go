package wire

import "github.com/leasehold/leasehold/internal/core"

// Sessions, claims and what is remembered of those that ended. Counts of what is bound to a
// session are not written: they are counted again as the claims are read.

func (c *codec) coreSession(v *core.Session) {
	c.text("id", &v.ID)
	c.duration("ttl", &v.TTL)
	c.labels("labels", &v.Labels)
	c.signed("opened", &v.OpenedWall)
	c.time("expires", &v.Expires)
	c.unsigned("sequence", &v.Sequence)
	c.unsigned8("gap", &v.Gap)
	if present(c, "touched", &v.Touched) {
		c.unsigned("interventions", &v.Touched.Count)
		c.names("intervened", &v.Touched.IDs)
	}
}

// claim is a lease or a waiter: which of them shows in its token. Its timer is not written,
// since it follows from the deadlines.
func (c *codec) claim(v *core.Claim) {
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.text("holder", &v.Holder)
	c.text("session", &v.Session)
	c.duration("ttl", &v.TTL)
	c.token("token", &v.Token)
	c.time("since", &v.Since)
	c.signed("since wall", &v.SinceWall)
	c.revision("revision", &v.Revision)
	c.time("expires", &v.Expires)
	c.unsigned32("slots", &v.Slots)
	c.unsigned8("gap", &v.Gap)
	c.unsigned8("long", &v.Long)
	c.flag("overdue", &v.Overdue)
	c.flag("native", &v.Native)
	if present(c, "wait", &v.Wait) {
		c.wait(v.Wait)
	}
	if present(c, "terms", &v.Terms) {
		c.terms(v.Terms)
	}
}

func (c *codec) wait(v *core.Wait) {
	c.time("until", &v.Until)
	c.number("priority", &v.Priority)
	c.unsigned("order", &v.Order)
	c.names("with", &v.With)
}

// terms are written only for a claim that has some, which saves a dozen bytes on most.
func (c *codec) terms(v *core.Terms) {
	c.text("reason", &v.Reason)
	c.labels("labels", &v.Labels)
	c.text("party", &v.Party)
	c.duration("grace", &v.Grace)
	c.duration("hold limit", &v.HoldLimit)
	c.duration("expected", &v.Expected)
	c.time("break at", &v.BreakAt)
	c.text("break by", &v.BreakBy)
	c.text("break reason", &v.BreakReason)
	c.names("units", &v.Units)
	if present(c, "after", &v.After) {
		c.ending(v.After)
	}
	c.duration("waited", &v.Waited)
	c.signed("changed wall", &v.ChangedWall)
	c.text("foreign", &v.Foreign)
	c.flag("may expire", &v.MayExpire)
	c.text("door", &v.Door)
	c.text("note", &v.Note)
	c.signed("noted wall", &v.NotedWall)
	if present(c, "face", &v.Face) {
		c.text("face path", &v.Face.Path)
		c.flag("face stays", &v.Face.Stay)
		c.flag("face made", &v.Face.Made)
	}
}

// endedClaim is an id that ended. The order in which such records come is the order in which
// they are forgotten.
func (c *codec) endedClaim(kind uint64, v *core.EndedClaim) {
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.oneOf("how", (*uint8)(&v.How), hows)
	c.time("at", &v.At)
	c.text("next", &v.Next)
	if kind == kindFinishedClaim {
		c.finishedClaim(v)
	}
	c.ownerIf(kind == kindOwnedEndedClaim, &v.Owner)
}

// endedKind is the kind of an id that ended.
func endedKind(v *core.EndedClaim) uint64 {
	if v.Said != 0 {
		return kindFinishedClaim
	}
	return owned(v.Owner, kindEndedClaim, kindOwnedEndedClaim)
}

// finishedClaim is what a claim has beyond that of which something was said.
func (c *codec) finishedClaim(v *core.EndedClaim) {
	if c.unsigned("said", &v.Said); v.Said == 0 && c.fault == nil {
		c.fail("said", "it is nothing, and then the record is of another kind")
	}
	c.ownerIf(present(c, "owner", &v.Owner), &v.Owner)
}

func (c *codec) endedSession(v *core.EndedSession) {
	c.text("id", &v.ID)
	c.oneOf("how", (*uint8)(&v.How), hows)
	c.time("at", &v.At)
}

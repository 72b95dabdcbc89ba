package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// The kinds of records. A number is given once and for ever.
const (
	kindEnd          = 0
	kindHead         = 1
	kindSpaceHead    = 2
	kindSession      = 3
	kindResource     = 4
	kindClaim        = 5
	kindEndedClaim   = 6
	kindEndedSession = 7
	kindOutcome      = 8
	kindEvent        = 9
	kindRecord       = 10

	// An outcome with an answer about records. Others are as they were before there
	// were any.
	kindRecordOutcome = 11

	kindDefinition = 12
	kindAlarm      = 13
	kindRestored   = 14

	kindShelf   = 15
	kindVersion = 16

	kindTotals = 17

	// A namespace of which it is known when it changed last. Others are as they were before
	// that was kept.
	kindSpaceChanged = 18

	kindMark  = 19
	kindChore = 20
)

var recordNames = [...]string{
	kindEnd: "end", kindHead: "head", kindSpaceHead: "namespace", kindSession: "session", kindResource: "resource",
	kindClaim: "claim", kindEndedClaim: "ended claim", kindEndedSession: "ended session", kindOutcome: "outcome", kindEvent: "event",
	kindRecord: "record", kindRecordOutcome: "record outcome",
	kindDefinition: "definition", kindAlarm: "alarm", kindRestored: "restored",
	kindShelf: "shelf", kindVersion: "version", kindTotals: "totals", kindSpaceChanged: "namespace changed",
	kindMark:  "withdrawn id",
	kindChore: "chore",
}

// recordLevel is the feature level that a kind of record came with.
func recordLevel(kind uint64) uint64 {
	switch kind {
	case kindRestored:
		return levelRestored
	case kindShelf, kindVersion:
		return levelValues
	case kindMark, kindChore, kindTotals, kindSpaceChanged:
		return levelStated
	}
	return levelFirst
}

// ofNoSpace tells the records that belong to the whole state.
func ofNoSpace(kind uint64) bool {
	return kind == kindHead || kind == kindRestored || kind == kindTotals
}

// isSpaceHead tells the records with which a namespace begins.
func isSpaceHead(kind uint64) bool { return kind == kindSpaceHead || kind == kindSpaceChanged }

func recordKind(value any) uint64 {
	switch v := value.(type) {
	case *core.Head:
		return kindHead
	case *core.SpaceHead:
		if v.Changed != 0 {
			return kindSpaceChanged
		}
		return kindSpaceHead
	case *core.Session:
		return kindSession
	case *core.Resource:
		return kindResource
	case *core.Claim:
		return kindClaim
	case *core.EndedClaim:
		return kindEndedClaim
	case *core.EndedSession:
		return kindEndedSession
	case *core.Outcome:
		if v.Answer.Record != nil || v.Answer.Txn != nil {
			return kindRecordOutcome
		}
		return kindOutcome
	case *leasehold.Event:
		return kindEvent
	case *leasehold.Record:
		return kindRecord
	case *leasehold.Definition:
		return kindDefinition
	case *core.Alarm:
		return kindAlarm
	case *core.Restored:
		return kindRestored
	case *core.Shelf:
		return kindShelf
	case *leasehold.Version:
		return kindVersion
	case *core.Totals:
		return kindTotals
	case *core.Mark:
		return kindMark
	case *core.Chore:
		return kindChore
	}
	return kindEnd
}

func newRecord(kind uint64) any {
	switch kind {
	case kindHead:
		return new(core.Head)
	case kindSpaceHead, kindSpaceChanged:
		return new(core.SpaceHead)
	case kindSession:
		return new(core.Session)
	case kindResource:
		return new(core.Resource)
	case kindClaim:
		return new(core.Claim)
	case kindEndedClaim:
		return new(core.EndedClaim)
	case kindEndedSession:
		return new(core.EndedSession)
	case kindOutcome, kindRecordOutcome:
		return new(core.Outcome)
	case kindRecord:
		return new(leasehold.Record)
	case kindEvent:
		return new(leasehold.Event)
	case kindDefinition:
		return new(leasehold.Definition)
	case kindAlarm:
		return new(core.Alarm)
	case kindRestored:
		return new(core.Restored)
	case kindShelf:
		return new(core.Shelf)
	case kindVersion:
		return new(leasehold.Version)
	case kindTotals:
		return new(core.Totals)
	case kindMark:
		return new(core.Mark)
	case kindChore:
		return new(core.Chore)
	}
	return nil
}

// record goes over the value of a record; its namespace comes before it.
func (c *codec) record(kind uint64, value any) {
	switch v := value.(type) {
	case *core.Head:
		c.head(v)
	case *core.SpaceHead:
		c.spaceHead(v)
		if kind == kindSpaceChanged {
			c.changed(v)
		}
	case *core.Session:
		c.coreSession(v)
	case *core.Resource:
		c.resource(v)
	case *core.Claim:
		c.claim(v)
	case *core.EndedClaim:
		c.endedClaim(v)
	case *core.EndedSession:
		c.endedSession(v)
	case *core.Outcome:
		c.outcome(v)
		if kind == kindRecordOutcome {
			c.recordOutcome(v)
		}
	case *leasehold.Event:
		c.event(v)
	case *leasehold.Record:
		c.namedValue(v)
	case *leasehold.Definition:
		c.definition(v)
	case *core.Alarm:
		c.alarm(v)
	case *core.Restored:
		c.restored(v)
	case *core.Shelf:
		c.shelf(v)
	case *leasehold.Version:
		c.former(v)
	case *core.Totals:
		c.totals(v)
	case *core.Mark:
		c.text("session", &v.Session)
		c.text("id", &v.ID)
	case *core.Chore:
		c.chore(v)
	}
}

func (c *codec) chore(v *core.Chore) {
	c.oneOf("kind", (*uint8)(&v.Kind), chores)
	c.text("name", &v.Name)
	c.unsigned("order", &v.Order)
	c.text("path", &v.Path)
	if present(c, "left", &v.Left) {
		c.duration("ttl", &v.Left.TTL)
		c.unsigned8("gap", &v.Left.Gap)
		c.oneOf("how", (*uint8)(&v.Left.How), hows)
		c.time("at", &v.Left.At)
		c.number("leases", &v.Left.Leases)
		c.text("resource", &v.Left.Resource)
		c.text("holder", &v.Left.Holder)
	}
}

func (c *codec) head(v *core.Head) {
	c.time("now", &v.Now)
	c.signed("wall", &v.Wall)
	c.lead(&v.Lead)
	c.unsigned("idle sequence", &v.IdleSeq)
	c.unsigned("alarm order", &v.AlarmOrder)
	list(c, "raised", &v.Raised, minRaised, func(n *uint64) { c.unsigned("raised", n) })
}

func (c *codec) restored(v *core.Restored) {
	c.unsigned("base", &v.Base)
	c.signed("wall", &v.Wall)
	c.duration("quarantine", &v.Quarantine)
	c.time("until", &v.Until)
	c.flag("over", &v.Over)
	c.text("space", &v.Space)
	c.text("path", &v.Path)
}

// minRaised is the least that a number takes.
const minRaised = 1

func (c *codec) spaceHead(v *core.SpaceHead) {
	c.token("token", &v.Token)
	c.revision("revision", &v.Revision)
	c.unsigned("arrivals", &v.Arrivals)
	c.revision("lost revision", &v.LostRevision)
	c.unsigned32("lost n", &v.LostN)
}

func (c *codec) changed(v *core.SpaceHead) {
	if c.time("changed", &v.Changed); v.Changed == 0 && c.fault == nil {
		c.fail("changed", "it is missing, and then the record is of another kind")
	}
}

func (c *codec) totals(v *core.Totals) {
	c.caps(&v.Caps)
	c.flag("set", &v.Set)
	c.token("token", &v.Token)
	c.revision("revision", &v.Revision)
	c.text("swept", &v.Swept)
}

func (c *codec) coreSession(v *core.Session) {
	c.text("id", &v.ID)
	c.duration("ttl", &v.TTL)
	c.labels("labels", &v.Labels)
	c.signed("opened", &v.OpenedWall)
	c.time("expires", &v.Expires)
	c.unsigned("sequence", &v.Sequence)
	c.unsigned8("gap", &v.Gap)
	if c.level >= levelStated {
		if present(c, "touched", &v.Touched) {
			c.unsigned("interventions", &v.Touched.Count)
			c.names("intervened", &v.Touched.IDs)
		}
	}
}

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

func (c *codec) alarm(v *core.Alarm) {
	c.oneOf("kind", (*uint8)(&v.Kind), alarms)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.text("session", &v.Session)
	c.unsigned("order", &v.Order)
	c.signed("since wall", &v.SinceWall)
	c.time("last", &v.Last)
	c.signed("last wall", &v.LastWall)
	c.number("count", &v.Count)
	c.text("text", &v.Text)
	c.number("limit", &v.Limit)
}

func (c *codec) rest(v *core.Rest) {
	c.unsigned32("slots", &v.Slots)
	c.names("units", &v.Units)
	c.time("until", &v.Until)
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
	c.how(&v.How, hows)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.signed("wall", &v.Wall)
	if c.level >= levelStated {
		c.text("foreign", &v.Foreign)
		c.duration("ttl", &v.TTL)
	}
}

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
	if c.level >= levelStated {
		c.text("foreign", &v.Foreign)
	}
}

func (c *codec) endedClaim(v *core.EndedClaim) {
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.how(&v.How, hows)
	c.time("at", &v.At)
	c.text("next", &v.Next)
}

func (c *codec) endedSession(v *core.EndedSession) {
	c.text("id", &v.ID)
	c.how(&v.How, hows)
	c.time("at", &v.At)
}

func (c *codec) outcome(v *core.Outcome) {
	c.text("key", &v.Key)
	c.text("subject", &v.Subject)
	c.time("at", &v.At)
	if present(c, "lease", &v.Answer.Lease) {
		c.lease(v.Answer.Lease)
	}
	if present(c, "session", &v.Answer.Session) {
		c.session(v.Answer.Session)
	}
	list(c, "also", &v.Answer.Also, minLease, c.lease)
	if present(c, "waiter", &v.Answer.Waiter) {
		c.waiter(v.Answer.Waiter)
	}
	if present(c, "definition", &v.Answer.Definition) {
		c.definition(v.Answer.Definition)
	}
	if present(c, "error", &v.Answer.Err) {
		c.refusal(v.Answer.Err)
	}
}

// minLease is the least that a lease takes.
const minLease = 20

func (c *codec) lease(v *leasehold.Lease) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.labels("labels", &v.Labels)
	c.text("reason", &v.Reason)
	c.text("session", &v.Session)
	c.oneOf("state", (*uint8)(&v.State), states)
	c.token("token", &v.Token)
	c.token("floor", &v.Floor)
	c.number("slots", &v.Slots)
	c.names("units", &v.Units)
	c.duration("ttl", &v.TTL)
	c.duration("hold limit", &v.HoldLimit)
	c.duration("remaining", &v.Remaining)
	c.moment("acquired", &v.Acquired)
	c.moment("expires", &v.Expires)
	c.moment("available at", &v.AvailableAt)
	c.revision("revision", &v.Revision)
	if present(c, "after", &v.After) {
		c.shownEnding(v.After)
	}
	if c.level >= levelStated {
		c.unsigned("interventions", &v.Interventions)
		c.text("foreign", &v.Foreign)
	}
}

func (c *codec) shownEnding(v *leasehold.Ending) {
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.how(&v.How, hows)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.moment("at", &v.At)
	if c.level >= levelStated {
		c.text("foreign", &v.Foreign)
		c.duration("ttl", &v.TTL)
	}
}

func (c *codec) session(v *leasehold.Session) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.duration("ttl", &v.TTL)
	c.labels("labels", &v.Labels)
	c.duration("remaining", &v.Remaining)
	c.moment("opened", &v.Opened)
	c.moment("expires", &v.Expires)
	c.number("claims", &v.Claims)
	if c.level >= levelStated {
		c.unsigned("interventions", &v.Interventions)
		c.names("intervened", &v.Intervened)
	}
}

func (c *codec) waiter(v *leasehold.Waiter) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.labels("labels", &v.Labels)
	c.text("reason", &v.Reason)
	c.text("session", &v.Session)
	c.number("slots", &v.Slots)
	c.number("priority", &v.Priority)
	c.number("position", &v.Position)
	c.moment("since", &v.Since)
	c.moment("until", &v.Until)
	c.duration("forecast", &v.Forecast)
	if c.level >= levelStated {
		c.text("foreign", &v.Foreign)
	}
}

func (c *codec) refusal(v *leasehold.Error) {
	c.oneOf("code", (*uint8)(&v.Code), codes)
	c.text("message", &v.Message)
	if present(c, "lease in the way", &v.Lease) {
		c.lease(v.Lease)
	}
	c.number("waiting", &v.Waiting)
	c.number("position", &v.Position)
	c.duration("forecast", &v.Forecast)
	list(c, "cycle", &v.Cycle, minWait, func(w *leasehold.Wait) {
		c.text("holder", &w.Holder)
		c.text("resource", &w.Resource)
	})
}

// minWait is the least that a step of a cycle takes.
const minWait = 2

// event leaves out the namespace, which is that of its record.
func (c *codec) event(v *leasehold.Event) {
	c.revision("revision", &v.Revision)
	c.unsigned32("n", &v.N)
	c.oneOf("kind", (*uint8)(&v.Kind), kinds)
	c.how(&v.How, maybeHow)
	c.moment("at", &v.At)
	c.moment("until", &v.Until)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.text("session", &v.Session)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	if v.Kind == leasehold.Alarmed || v.Kind == leasehold.AlarmCleared {
		c.oneOf("alarm", (*uint8)(&v.Alarm), alarms)
	} else if v.Alarm != 0 {
		c.fail("alarm", "the event is about none")
	}
	if v.Kind == leasehold.RecordPut || v.Kind == leasehold.RecordDeleted {
		if present(c, "record", &v.Record) {
			c.namedValue(v.Record)
		}
		if present(c, "previous", &v.Previous) {
			c.namedValue(v.Previous)
		}
	} else if v.Record != nil || v.Previous != nil {
		c.fail("record", "the event is about none")
	}
	if v.Kind == leasehold.Ended || v.Kind == leasehold.Changed {
		if present(c, "hold", &v.Hold) {
			c.hold(v)
		}
	} else if v.Hold != nil {
		c.fail("hold", "the event ends none")
	}
	if c.level >= levelStated {
		c.text("foreign", &v.Foreign)
	}
}

// hold goes over the hold that an event ended. Whose it was stands in the event already,
// unless the holder has changed.
func (c *codec) hold(e *leasehold.Event) {
	v := e.Hold
	if e.Kind == leasehold.Changed {
		c.text("hold id", &v.ID)
		c.text("hold holder", &v.Holder)
		c.token("hold token", &v.Token)
	} else if !c.writing {
		v.ID, v.Holder, v.Token = e.ID, e.Holder, e.Token
	} else if v.ID != e.ID || v.Holder != e.Holder || v.Token != e.Token {
		c.fail("hold", "it is not the one that ended")
	}
	c.moment("hold since", &v.Since)
	c.moment("hold until", &v.Until)
	c.duration("hold waited", &v.Waited)
}

// namedValue is a record of the dictionary.
func (c *codec) namedValue(v *leasehold.Record) {
	c.text("path", &v.Path)
	c.content("value", &v.Value, &v.Large)
	c.revision("create", &v.Create)
	c.revision("mod", &v.Mod)
	c.unsigned("version", &v.Version)
	c.text("session", &v.Session)
	c.token("token", &v.Token)
}

func (c *codec) shelf(v *core.Shelf) {
	c.text("path", &v.Path)
	c.number("keep", &v.Keep)
	c.time("deleted", &v.Deleted)
	c.signed("written", &v.Written)
	c.text("holder", &v.Holder)
}

// former is a version that a record had once. It is not the current one.
func (c *codec) former(v *leasehold.Version) {
	c.text("path", &v.Path)
	c.content("value", &v.Value, &v.Large)
	c.revision("revision", &v.Revision)
	c.revision("create", &v.Create)
	c.unsigned("version", &v.Version)
	c.moment("written", &v.Written)
	c.text("holder", &v.Holder)
	c.text("session", &v.Session)
	c.token("token", &v.Token)
	c.flag("deleted", &v.Deleted)
	if v.Current {
		c.fail("current", "it is a former one")
	}
}

// recordOutcome goes over what an outcome about records has besides.
func (c *codec) recordOutcome(v *core.Outcome) {
	if present(c, "record", &v.Answer.Record) {
		c.namedValue(v.Answer.Record)
	}
	if present(c, "txn", &v.Answer.Txn) {
		c.txnAnswer(v.Answer.Txn)
	}
	if v.Answer.Record == nil && v.Answer.Txn == nil {
		c.fail("txn", "it is an outcome about no record")
	}
}

// minResult is the least that a result takes: no record, nothing deleted, no lease.
const minResult = 4

func (c *codec) txnAnswer(v *core.TxnAnswer) {
	c.flag("succeeded", &v.Succeeded)
	c.revision("revision", &v.Revision)
	list(c, "results", &v.Results, minResult, func(r *core.TxnResult) {
		if present(c, "result record", &r.Record) {
			c.namedValue(r.Record)
		}
		c.number("deleted", &r.Deleted)
		if present(c, "result lease", &r.Lease) {
			c.lease(r.Lease)
		}
		list(c, "result also", &r.Also, minLease, c.lease)
		if r.Page != nil {
			c.fail("page", "what was read is not remembered")
		}
	})
}

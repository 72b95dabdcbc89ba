package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
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

	kindPolicy      = 21
	kindToken       = 22
	kindRole        = 23
	kindBinding     = 24
	kindQuota       = 25
	kindIssuer      = 26
	kindCertificate = 27

	// What somebody owns. Others are as they were before that was kept.
	kindOwnedSession      = 28
	kindClaimOwner        = 29
	kindOwnedEndedClaim   = 30
	kindOwnedEndedSession = 31
	kindRecordOwner       = 32
	kindOwnedEvent        = 33

	kindRevocation = 34
	kindLoss       = 35
	kindWithdrawal = 36

	kindMirror = 37

	kindPoolUnit = 38

	// A claim that selects units, a definition with limits of units, and an outcome that shows one. Others are as they
	// were before.
	kindSelectClaim      = 39
	kindLimitsDefinition = 40
	kindLimitsOutcome    = 41

	kindKind = 42 // what was learned of a kind of leases

	kindTask = 43

	// A claim on a task, or for one. Others are as they were before.
	kindTaskClaim = 44

	kindUnitUse = 46

	// A definition with rules for idle leases, an outcome that shows one, and the event of a hold of which it is known
	// how much it was used. Others are as they were before.
	kindIdleDefinition = 47
	kindIdleOutcome    = 48
	kindUsedEvent      = 49

	kindCalendar    = 50
	kindReservation = 51
	kindSeries      = 52

	// A claim of a reservation, a definition that says what happens when one begins, and an outcome that shows one.
	// Others are as they were before.
	kindReservedClaim   = 53
	kindStartDefinition = 54
	kindStartOutcome    = 55

	// A definition with backfill, and an outcome that shows one. Others are as they were before.
	kindBackfillDefinition = 60
	kindBackfillOutcome    = 61

	kindCalm = 62

	kindFinishedClaim = 63 // an ended claim on a task, of which something was said. Others are as they were before
)

// The names are for messages alone. A kind without a name is not known here.
var recordNames = [...]string{
	kindEnd: "end", kindHead: "head", kindSpaceHead: "namespace", kindSession: "session", kindResource: "resource",
	kindClaim: "claim", kindEndedClaim: "ended claim", kindEndedSession: "ended session", kindOutcome: "outcome",
	kindEvent:  "event",
	kindRecord: "record", kindRecordOutcome: "record outcome",
	kindDefinition: "definition", kindAlarm: "alarm", kindRestored: "restored",
	kindShelf: "shelf", kindVersion: "version", kindTotals: "totals", kindSpaceChanged: "namespace changed",
	kindMark:  "withdrawn id",
	kindChore: "chore",

	kindPolicy: "policy", kindToken: "token", kindRole: "role", kindBinding: "binding", kindQuota: "quota",
	kindIssuer: "issuer", kindCertificate: "certificate", kindOwnedSession: "owned session",
	kindClaimOwner: "claim owner", kindOwnedEndedClaim: "owned ended claim",
	kindOwnedEndedSession: "owned ended session", kindRecordOwner: "record owner",
	kindOwnedEvent: "owned event",
	kindRevocation: "revocation", kindLoss: "loss", kindWithdrawal: "withdrawal", kindMirror: "mirror",
	kindPoolUnit: "pool unit", kindSelectClaim: "select claim", kindLimitsDefinition: "limits definition",
	kindLimitsOutcome: "limits outcome", kindKind: "kind", kindTask: "task", kindTaskClaim: "task claim",
	kindUnitUse: "unit use", kindIdleDefinition: "idle definition", kindIdleOutcome: "idle outcome",
	kindUsedEvent: "used event",
	kindCalendar:  "calendar", kindReservation: "reservation",
	kindSeries: "series", kindReservedClaim: "reserved claim", kindStartDefinition: "start definition",
	kindStartOutcome: "start outcome", kindBackfillDefinition: "backfill definition",
	kindBackfillOutcome: "backfill outcome", kindCalm: "calm",
	kindFinishedClaim: "finished claim",
}

// recordKind returns the number under which a piece is written; kindEnd if it has none. Of two
// layouts for one type, the older is used when it has room for everything.
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
		return owned(v.Owner, kindSession, kindOwnedSession)
	case *core.Resource:
		return kindResource
	case *core.Claim:
		return claimKind(v)
	case *core.EndedClaim:
		return endedKind(v)
	case *core.EndedSession:
		return owned(v.Owner, kindEndedSession, kindOwnedEndedSession)
	// Most outcomes are about no record, and are written as they always were.
	case *core.Outcome:
		if v.Answer.Record != nil || v.Answer.Txn != nil {
			return kindRecordOutcome
		}
		return definedOutcome(v.Answer.Definition)
	case *leasehold.Event:
		if h := v.Hold; h != nil && (h.Busy != 0 || h.Idle != 0) {
			return kindUsedEvent
		}
		return owned(v.Owner, kindEvent, kindOwnedEvent)
	case *leasehold.Record:
		return kindRecord
	case *leasehold.Definition:
		return definitionKind(v)
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
	case *core.Mirror:
		return kindMirror
	case *pool.Unit:
		return kindPoolUnit
	case *core.Kind:
		return kindKind
	case *leasehold.Task:
		return kindTask
	case *core.UnitUse:
		return kindUnitUse
	case *core.Calm:
		return kindCalm
	}
	return plannedKind(value)
}

// owned returns the kind of what somebody owns, or of what nobody does.
func owned(by *access.Owner, without, with uint64) uint64 {
	if by != nil {
		return with
	}
	return without
}

// newRecord returns an empty piece of a kind to read into.
func newRecord(kind uint64) any {
	switch kind {
	case kindHead:
		return new(core.Head)
	case kindSpaceHead, kindSpaceChanged:
		return new(core.SpaceHead)
	case kindSession, kindOwnedSession:
		return new(core.Session)
	case kindResource:
		return new(core.Resource)
	case kindClaim, kindSelectClaim, kindTaskClaim, kindReservedClaim:
		return new(core.Claim)
	case kindEndedClaim, kindOwnedEndedClaim, kindFinishedClaim:
		return new(core.EndedClaim)
	case kindEndedSession, kindOwnedEndedSession:
		return new(core.EndedSession)
	case kindOutcome, kindRecordOutcome, kindLimitsOutcome, kindIdleOutcome, kindStartOutcome, kindBackfillOutcome:
		return new(core.Outcome)
	case kindRecord:
		return new(leasehold.Record)
	case kindEvent, kindOwnedEvent, kindUsedEvent:
		return new(leasehold.Event)
	case kindDefinition, kindLimitsDefinition, kindIdleDefinition, kindStartDefinition, kindBackfillDefinition:
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
	case kindMirror:
		return new(core.Mirror)
	case kindPoolUnit:
		return new(pool.Unit)
	case kindKind:
		return new(core.Kind)
	case kindTask:
		return new(leasehold.Task)
	case kindUnitUse:
		return new(core.UnitUse)
	case kindCalm:
		return new(core.Calm)
	case kindCalendar:
		return new(core.Calendar)
	case kindReservation:
		return new(reservation.Reservation)
	case kindSeries:
		return new(reservation.Series)
	}
	return newAccess(kind)
}

// record is the value of a record; its namespace comes before it.
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
		c.ownerIf(kind == kindOwnedSession, &v.Owner)
	case *core.Resource:
		c.resource(v)
	case *core.Claim:
		c.claimOf(kind, v)
	case *core.EndedClaim:
		c.endedClaim(kind, v)
	case *core.EndedSession:
		c.endedSession(v)
		c.ownerIf(kind == kindOwnedEndedSession, &v.Owner)
	case *core.Outcome:
		c.outcome(v)
		switch kind {
		case kindRecordOutcome:
			c.recordOutcome(v)
		case kindLimitsOutcome, kindIdleOutcome, kindStartOutcome, kindBackfillOutcome:
			c.limitsOutcome(kind, v)
		}
	case *leasehold.Event:
		c.eventOf(kind, v)
	case *leasehold.Record:
		c.namedValue(v)
	case *leasehold.Definition:
		c.definitionOf(kind, v)
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
	case *core.Mirror:
		c.text("resource", &v.Resource)
		c.text("prefix", &v.Prefix)
	case *pool.Unit, *core.UnitUse, *core.Calm:
		c.poolPiece(v)
	case *core.Kind:
		c.kind(v)
	case *leasehold.Task:
		c.task(v)
	default:
		c.reservationPiece(value)
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

// head has no level in it: that is the level of the whole snapshot, which comes before all
// records.
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

// changed is refused when it is zero: such a namespace is written with the older kind, and a
// value has one encoding.
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
	c.flag("quiet", &v.Quiet)
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
	c.text("lease", &v.Lease)
}

func (c *codec) lead(v *core.Lead) {
	c.unsigned("node", &v.Node)
	c.text("boot", &v.Boot)
	c.duration("offset", &v.Offset)
}

func (c *codec) caps(v *leasehold.Caps) {
	c.number("leases", &v.Leases)
	c.number("sessions", &v.Sessions)
	c.number("waiters", &v.Waiters)
	c.number("namespaces", &v.Namespaces)
}

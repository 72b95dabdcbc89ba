package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// The fields of what the kernel keeps: namespaces, sessions, resources, claims, and what is remembered of those that
// ended. What follows from others is not written: how many claims a session has, which slots of a resource are used,
// what a timer is set to.

// head has no level in it: that is the level of the whole snapshot, which comes before all
// records.
func (m *message) head(v *core.Head) {
	m.time(1, "now", &v.Now)
	m.signed(2, "wall", &v.Wall)
	inner(m, 3, "lead", &v.Lead, m.lead)
	m.unsigned(4, "idle sequence", &v.IdleSeq)
	m.unsigned(5, "alarm order", &v.AlarmOrder)
	m.counts(6, "raised", &v.Raised)
}

// spaceHead begins a namespace.
func (m *message) spaceHead(v *core.SpaceHead) {
	m.token(1, "token", &v.Token)
	m.revision(2, "revision", &v.Revision)
	m.unsigned(3, "arrivals", &v.Arrivals)
	m.revision(4, "lost revision", &v.LostRevision)
	m.unsigned32(5, "lost n", &v.LostN)
	m.time(6, "changed", &v.Changed)
}

// totals are of all namespaces together.
func (m *message) totals(v *core.Totals) {
	inner(m, 1, "caps", &v.Caps, m.caps)
	m.flag(2, "set", &v.Set)
	m.token(3, "token", &v.Token)
	m.revision(4, "revision", &v.Revision)
	m.text(5, "swept", &v.Swept)
}

// restored says that the state came from a backup.
func (m *message) restored(v *core.Restored) {
	m.unsigned(1, "base", &v.Base)
	m.signed(2, "wall", &v.Wall)
	m.duration(3, "quarantine", &v.Quarantine)
	m.time(4, "until", &v.Until)
	m.flag(5, "over", &v.Over)
	m.text(6, "space", &v.Space)
	m.text(7, "path", &v.Path)
}

func (m *message) coreSession(v *core.Session) {
	m.text(1, "id", &v.ID)
	m.duration(2, "ttl", &v.TTL)
	m.labels(3, "labels", &v.Labels)
	m.signed(4, "opened", &v.OpenedWall)
	m.time(5, "expires", &v.Expires)
	m.unsigned(6, "sequence", &v.Sequence)
	m.unsigned8(7, "gap", &v.Gap)
	maybe(m, 8, "touched", &v.Touched, m.touched)
	m.owner(9, &v.Owner)
}

// touched is how often others intervened in what is bound to a session.
func (m *message) touched(v *core.Touched) {
	m.unsigned(1, "interventions", &v.Count)
	m.names(2, "intervened", &v.IDs)
}

// mark is an id that was withdrawn before it came.
func (m *message) mark(v *core.Mark) {
	m.text(1, "session", &v.Session)
	m.text(2, "id", &v.ID)
}

// resource is a resource with what is remembered of it. Its place among the idle ones is
// written, because that decides which resource is forgotten next.
func (m *message) resource(v *core.Resource) {
	m.text(1, "path", &v.Path)
	m.text(2, "claim", &v.Claim)
	m.number(3, "waiting", &v.Waiting)
	m.unsigned(4, "idle", &v.Idle)
	maybe(m, 5, "more", &v.More, m.more)
}

func (m *message) more(v *core.More) {
	maybe(m, 1, "last", &v.Last, m.ending)
	several(m, 2, "rests", &v.Rests, maxListed, m.rest)
	maybe(m, 3, "shares", &v.Shares, m.shares)
	maybe(m, 4, "usual", &v.Usual, m.usual)
}

// rest keeps slots free behind an end, which it always has.
func (m *message) rest(v *core.Rest) {
	m.unsigned32(1, "slots", &v.Slots)
	m.names(2, "units", &v.Units)
	m.time(3, "until", &v.Until)
	maybe(m, 4, "after", &v.After, m.ending)
	m.must("after", v.After != nil)
}

func (m *message) ending(v *core.Ending) {
	m.text(1, "id", &v.ID)
	m.text(2, "holder", &v.Holder)
	m.token(3, "token", &v.Token)
	m.oneOf(4, "how", (*uint8)(&v.How), hows)
	m.text(5, "by", &v.By)
	m.text(6, "reason", &v.Reason)
	m.signed(7, "wall", &v.Wall)
	m.text(8, "foreign", &v.Foreign)
	m.duration(9, "ttl", &v.TTL)
}

func (m *message) shares(v *core.Shares) {
	m.number(1, "capacity", &v.Capacity)
	several(m, 2, "units", &v.Units, maxListed, m.unit)
}

func (m *message) unit(v *core.Unit) {
	m.text(1, "name", &v.Name)
	m.text(2, "holder", &v.Holder)
	m.time(3, "freed", &v.Freed)
}

// usual is what was learned of a resource.
func (m *message) usual(v *core.Usual) {
	m.text(1, "holds", &v.Holds)
	m.text(2, "waits", &v.Waits)
	m.time(3, "lost", &v.Lost)
	m.time(4, "lost before", &v.LostBefore)
}

// learned is what was learned of a kind of leases.
func (m *message) learned(v *core.Kind) {
	m.text(1, "resource", &v.Resource)
	m.text(2, "name", &v.Name)
	m.text(3, "recent", (*string)(&v.Recent))
}

// claim is a lease or a waiter: which of them shows in its token.
func (m *message) claim(v *core.Claim) {
	m.text(1, "id", &v.ID)
	m.text(2, "resource", &v.Resource)
	m.text(3, "holder", &v.Holder)
	m.text(4, "session", &v.Session)
	m.duration(5, "ttl", &v.TTL)
	m.token(6, "token", &v.Token)
	m.time(7, "since", &v.Since)
	m.signed(8, "since wall", &v.SinceWall)
	m.revision(9, "revision", &v.Revision)
	m.time(10, "expires", &v.Expires)
	m.unsigned32(11, "slots", &v.Slots)
	m.unsigned8(12, "gap", &v.Gap)
	m.unsigned8(13, "long", &v.Long)
	m.flag(14, "overdue", &v.Overdue)
	m.flag(15, "native", &v.Native)
	maybe(m, 16, "wait", &v.Wait, m.wait)
	maybe(m, 17, "terms", &v.Terms, m.terms)
}

func (m *message) wait(v *core.Wait) {
	m.time(1, "until", &v.Until)
	m.number(2, "priority", &v.Priority)
	m.unsigned(3, "order", &v.Order)
	m.names(4, "with", &v.With)
}

// terms are what most claims have nothing of.
func (m *message) terms(v *core.Terms) {
	m.text(1, "reason", &v.Reason)
	m.labels(2, "labels", &v.Labels)
	m.text(3, "party", &v.Party)
	m.duration(4, "grace", &v.Grace)
	m.duration(5, "hold limit", &v.HoldLimit)
	m.duration(6, "expected", &v.Expected)
	m.time(7, "break at", &v.BreakAt)
	m.text(8, "break by", &v.BreakBy)
	m.text(9, "break reason", &v.BreakReason)
	m.names(10, "units", &v.Units)
	maybe(m, 11, "after", &v.After, m.ending)
	m.duration(12, "waited", &v.Waited)
	m.signed(13, "changed wall", &v.ChangedWall)
	m.text(14, "foreign", &v.Foreign)
	m.flag(15, "may expire", &v.MayExpire)
	m.text(16, "door", &v.Door)
	m.text(17, "note", &v.Note)
	m.signed(18, "noted wall", &v.NotedWall)
	maybe(m, 19, "linked", &v.Linked, m.linked)
	maybe(m, 20, "select", &v.Select, m.selection)
	m.flag(21, "task", &v.Task)
	m.text(22, "reservation", &v.Reservation)
}

// linked is the record of a claim.
func (m *message) linked(v *core.LinkedRecord) {
	m.text(1, "linked path", &v.Path)
	m.flag(2, "linked stays", &v.Stay)
	m.flag(3, "linked made", &v.Made)
}

// endedClaim is an id that ended. The order in which such records come is the order in which
// they are forgotten.
func (m *message) endedClaim(v *core.EndedClaim) {
	m.text(1, "id", &v.ID)
	m.text(2, "resource", &v.Resource)
	m.text(3, "holder", &v.Holder)
	m.token(4, "token", &v.Token)
	m.oneOf(5, "how", (*uint8)(&v.How), hows)
	m.time(6, "at", &v.At)
	m.text(7, "next", &v.Next)
	m.unsigned(8, "said", &v.Said)
	m.owner(9, &v.Owner)
}

func (m *message) endedSession(v *core.EndedSession) {
	m.text(1, "id", &v.ID)
	m.oneOf(2, "how", (*uint8)(&v.How), hows)
	m.time(3, "at", &v.At)
	m.owner(4, &v.Owner)
}

// chore is work that was put off.
func (m *message) chore(v *core.Chore) {
	m.oneOf(1, "kind", (*uint8)(&v.Kind), chores)
	m.text(2, "name", &v.Name)
	m.unsigned(3, "order", &v.Order)
	m.text(4, "path", &v.Path)
	maybe(m, 5, "left", &v.Left, m.left)
}

func (m *message) left(v *core.Left) {
	m.duration(1, "ttl", &v.TTL)
	m.unsigned8(2, "gap", &v.Gap)
	m.oneOf(3, "how", (*uint8)(&v.How), hows)
	m.time(4, "at", &v.At)
	m.number(5, "leases", &v.Leases)
	m.text(6, "resource", &v.Resource)
	m.text(7, "holder", &v.Holder)
}

func (m *message) alarm(v *core.Alarm) {
	m.oneOf(1, "kind", (*uint8)(&v.Kind), alarms)
	m.text(2, "resource", &v.Resource)
	m.text(3, "id", &v.ID)
	m.text(4, "holder", &v.Holder)
	m.token(5, "token", &v.Token)
	m.text(6, "session", &v.Session)
	m.unsigned(7, "order", &v.Order)
	m.signed(8, "since wall", &v.SinceWall)
	m.time(9, "last", &v.Last)
	m.signed(10, "last wall", &v.LastWall)
	m.number(11, "count", &v.Count)
	m.text(12, "text", &v.Text)
	m.number(13, "limit", &v.Limit)
	m.flag(14, "quiet", &v.Quiet)
}

// owner is whose something is, if it is anybody's. Equal ones are one value after reading.
func (m *message) owner(tag uint8, p **access.Owner) {
	before := *p
	if maybe(m, tag, "owner", p, m.ownerFields); *p == before || m.owners == nil {
		return
	}
	if known, ok := m.owners[**p]; ok {
		*p = known
		return
	}
	m.owners[**p] = *p
}

func (m *message) ownerFields(v *access.Owner) {
	m.name(1, "principal", &v.Principal)
	m.text(2, "group", &v.Group)
}

// event leaves out the namespace, which is that of its record.
func (m *message) event(v *leasehold.Event) {
	m.revision(1, "revision", &v.Revision)
	m.unsigned32(2, "n", &v.N)
	m.oneOf(3, "kind", (*uint8)(&v.Kind), kinds)
	m.oneOf(4, "how", (*uint8)(&v.How), maybeHow)
	m.moment(5, "at", &v.At)
	m.moment(6, "until", &v.Until)
	m.text(7, "resource", &v.Resource)
	m.text(8, "id", &v.ID)
	m.text(9, "holder", &v.Holder)
	m.token(10, "token", &v.Token)
	m.text(11, "session", &v.Session)
	m.text(12, "by", &v.By)
	m.text(13, "reason", &v.Reason)
	m.text(14, "foreign", &v.Foreign)
	m.oneOf(15, "alarm", (*uint8)(&v.Alarm), maybeAlarm)
	maybe(m, 16, "record", &v.Record, m.record)
	maybe(m, 17, "previous", &v.Previous, m.record)
	maybe(m, 18, "hold", &v.Hold, func(*leasehold.Hold) { m.hold(v) })
	m.owner(19, &v.Owner)
}

// hold is the hold that an event ended. Whose it was is in the event already, unless the holder
// has changed.
func (m *message) hold(e *leasehold.Event) {
	v := e.Hold
	if e.Kind == leasehold.Changed {
		m.text(1, "hold id", &v.ID)
		m.text(2, "hold holder", &v.Holder)
		m.token(3, "hold token", &v.Token)
	} else if !m.writing {
		v.ID, v.Holder, v.Token = e.ID, e.Holder, e.Token
	} else if v.ID != e.ID || v.Holder != e.Holder || v.Token != e.Token {
		(*codec)(m).fail("hold", "it is not the one that ended")
	}
	m.moment(4, "hold since", &v.Since)
	m.moment(5, "hold until", &v.Until)
	m.duration(6, "hold waited", &v.Waited)
	m.duration(7, "hold busy", &v.Busy)
	m.duration(8, "hold idle", &v.Idle)
}

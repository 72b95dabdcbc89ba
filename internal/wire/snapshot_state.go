package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// The fields of what the kernel keeps: namespaces, sessions, resources, claims, and what is remembered of those that
// ended. What follows from others is not written: how many claims a session has, which slots of a resource are used,
// what a timer is set to.

// head has no level in it: that is the level of the whole snapshot, which comes before all
// records.
func headFields(v *core.Head, m *tagged.Message) {
	m.Signed(1, "now", (*int64)(&v.Now))
	m.Signed(2, "wall", &v.Wall)
	tagged.Inner(m, 3, "lead", &v.Lead, func(v *core.Lead) { command.Describe(v, m) })
	m.Unsigned(4, "idle sequence", &v.IdleSeq)
	m.Unsigned(5, "alarm order", &v.AlarmOrder)
	m.Counts(6, "raised", &v.Raised)
}

// spaceHead begins a namespace.
func spaceHeadFields(v *core.SpaceHead, m *tagged.Message) {
	m.Token(1, "token", &v.Token)
	m.Revision(2, "revision", &v.Revision)
	m.Unsigned(3, "arrivals", &v.Arrivals)
	m.Revision(4, "lost revision", &v.LostRevision)
	m.Unsigned32(5, "lost n", &v.LostN)
	m.Signed(6, "changed", (*int64)(&v.Changed))
}

// totals are of all namespaces together.
func totalsFields(v *core.Totals, m *tagged.Message) {
	tagged.Inner(m, 1, "caps", &v.Caps, tagged.Of(m, command.DescribeCaps))
	m.Flag(2, "set", &v.Set)
	m.Token(3, "token", &v.Token)
	m.Revision(4, "revision", &v.Revision)
	m.Text(5, "swept", &v.Swept)
}

// restored says that the state came from a backup.
func restoredFields(v *core.Restored, m *tagged.Message) {
	m.Unsigned(1, "base", &v.Base)
	m.Signed(2, "wall", &v.Wall)
	m.Duration(3, "quarantine", &v.Quarantine)
	m.Signed(4, "until", (*int64)(&v.Until))
	m.Flag(5, "over", &v.Over)
	m.Text(6, "space", &v.Space)
	m.Text(7, "path", &v.Path)
}

func coreSessionFields(v *core.Session, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Duration(2, "ttl", &v.TTL)
	m.Labels(3, "labels", &v.Labels)
	m.Signed(4, "opened", &v.OpenedWall)
	m.Signed(5, "expires", (*int64)(&v.Expires))
	m.Unsigned(6, "sequence", &v.Sequence)
	m.Unsigned8(7, "gap", &v.Gap)
	tagged.Maybe(m, 8, "touched", &v.Touched, tagged.Of(m, touchedFields))
	owner(m, 9, &v.Owner)
}

// touched is how often others intervened in what is bound to a session.
func touchedFields(v *core.Touched, m *tagged.Message) {
	m.Unsigned(1, "interventions", &v.Count)
	m.Names(2, "intervened", &v.IDs)
}

// mark is an id that was withdrawn before it came.
func markFields(v *core.Mark, m *tagged.Message) {
	m.Text(1, "session", &v.Session)
	m.Text(2, "id", &v.ID)
}

// resource is a resource with what is remembered of it. Its place among the idle ones is
// written, because that decides which resource is forgotten next.
func resourceFields(v *core.Resource, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.Text(2, "claim", &v.Claim)
	m.Number(3, "waiting", &v.Waiting)
	m.Unsigned(4, "idle", &v.Idle)
	tagged.Maybe(m, 5, "more", &v.More, tagged.Of(m, moreFields))
}

func moreFields(v *core.More, m *tagged.Message) {
	tagged.Maybe(m, 1, "last", &v.Last, tagged.Of(m, endingFields))
	tagged.Several(m, 2, "rests", &v.Rests, maxListed, tagged.Of(m, restFields))
	tagged.Maybe(m, 3, "shares", &v.Shares, tagged.Of(m, sharesFields))
	tagged.Maybe(m, 4, "usual", &v.Usual, tagged.Of(m, usualFields))
}

// rest keeps slots free behind an end, which it always has.
func restFields(v *core.Rest, m *tagged.Message) {
	m.Unsigned32(1, "slots", &v.Slots)
	m.Names(2, "units", &v.Units)
	m.Signed(3, "until", (*int64)(&v.Until))
	tagged.Maybe(m, 4, "after", &v.After, tagged.Of(m, endingFields))
	m.Must("after", v.After != nil)
}

func endingFields(v *core.Ending, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "holder", &v.Holder)
	m.Token(3, "token", &v.Token)
	m.OneOf(4, "how", (*uint8)(&v.How), hows)
	m.Text(5, "by", &v.By)
	m.Text(6, "reason", &v.Reason)
	m.Signed(7, "wall", &v.Wall)
	m.Text(8, "foreign", &v.Foreign)
	m.Duration(9, "ttl", &v.TTL)
}

func sharesFields(v *core.Shares, m *tagged.Message) {
	m.Number(1, "capacity", &v.Capacity)
	tagged.Several(m, 2, "units", &v.Units, maxListed, tagged.Of(m, unitFields))
}

func unitFields(v *core.Unit, m *tagged.Message) {
	m.Text(1, "name", &v.Name)
	m.Text(2, "holder", &v.Holder)
	m.Signed(3, "freed", (*int64)(&v.Freed))
}

// usual is what was learned of a resource.
func usualFields(v *core.Usual, m *tagged.Message) {
	m.Text(1, "holds", &v.Holds)
	m.Text(2, "waits", &v.Waits)
	m.Signed(3, "lost", (*int64)(&v.Lost))
	m.Signed(4, "lost before", (*int64)(&v.LostBefore))
}

// learned is what was learned of a kind of leases.
func learnedFields(v *core.Kind, m *tagged.Message) {
	m.Text(1, "resource", &v.Resource)
	m.Text(2, "name", &v.Name)
	m.Text(3, "recent", (*string)(&v.Recent))
}

// claim is a lease or a waiter: which of them shows in its token.
func claimFields(v *core.Claim, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "holder", &v.Holder)
	m.Text(4, "session", &v.Session)
	m.Duration(5, "ttl", &v.TTL)
	m.Token(6, "token", &v.Token)
	m.Signed(7, "since", (*int64)(&v.Since))
	m.Signed(8, "since wall", &v.SinceWall)
	m.Revision(9, "revision", &v.Revision)
	m.Signed(10, "expires", (*int64)(&v.Expires))
	m.Unsigned32(11, "slots", &v.Slots)
	m.Unsigned8(12, "gap", &v.Gap)
	m.Unsigned8(13, "long", &v.Long)
	m.Flag(14, "overdue", &v.Overdue)
	m.Flag(15, "native", &v.Native)
	tagged.Maybe(m, 16, "wait", &v.Wait, tagged.Of(m, waitFields))
	tagged.Maybe(m, 17, "terms", &v.Terms, tagged.Of(m, termsFields))
}

func waitFields(v *core.Wait, m *tagged.Message) {
	m.Signed(1, "until", (*int64)(&v.Until))
	m.Number(2, "priority", &v.Priority)
	m.Unsigned(3, "order", &v.Order)
	m.Names(4, "with", &v.With)
}

// terms are what most claims have nothing of.
func termsFields(v *core.Terms, m *tagged.Message) {
	m.Text(1, "reason", &v.Reason)
	m.Labels(2, "labels", &v.Labels)
	m.Text(3, "party", &v.Party)
	m.Duration(4, "grace", &v.Grace)
	m.Duration(5, "hold limit", &v.HoldLimit)
	m.Duration(6, "expected", &v.Expected)
	m.Signed(7, "break at", (*int64)(&v.BreakAt))
	m.Text(8, "break by", &v.BreakBy)
	m.Text(9, "break reason", &v.BreakReason)
	m.Names(10, "units", &v.Units)
	tagged.Maybe(m, 11, "after", &v.After, tagged.Of(m, endingFields))
	m.Duration(12, "waited", &v.Waited)
	m.Signed(13, "changed wall", &v.ChangedWall)
	m.Text(14, "foreign", &v.Foreign)
	m.Flag(15, "may expire", &v.MayExpire)
	m.Text(16, "door", &v.Door)
	m.Text(17, "note", &v.Note)
	m.Signed(18, "noted wall", &v.NotedWall)
	tagged.Maybe(m, 19, "linked", &v.Linked, tagged.Of(m, linkedFields))
	tagged.Maybe(m, 20, "select", &v.Select, tagged.Of(m, command.DescribeSelect))
	m.Flag(21, "task", &v.Task)
	m.Text(22, "reservation", &v.Reservation)
}

// linkedFields are those of the record of a claim.
func linkedFields(v *core.LinkedRecord, m *tagged.Message) {
	m.Text(1, "linked path", &v.Path)
	m.Flag(2, "linked stays", &v.Stay)
	m.Flag(3, "linked made", &v.Made)
}

// endedClaim is an id that ended. The order in which such records come is the order in which
// they are forgotten.
func endedClaimFields(v *core.EndedClaim, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "holder", &v.Holder)
	m.Token(4, "token", &v.Token)
	m.OneOf(5, "how", (*uint8)(&v.How), hows)
	m.Signed(6, "at", (*int64)(&v.At))
	m.Text(7, "next", &v.Next)
	m.Unsigned(8, "said", &v.Said)
	owner(m, 9, &v.Owner)
}

func endedSessionFields(v *core.EndedSession, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.OneOf(2, "how", (*uint8)(&v.How), hows)
	m.Signed(3, "at", (*int64)(&v.At))
	owner(m, 4, &v.Owner)
}

// chore is work that was put off.
func choreFields(v *core.Chore, m *tagged.Message) {
	m.OneOf(1, "kind", (*uint8)(&v.Kind), chores)
	m.Text(2, "name", &v.Name)
	m.Unsigned(3, "order", &v.Order)
	m.Text(4, "path", &v.Path)
	tagged.Maybe(m, 5, "left", &v.Left, tagged.Of(m, leftFields))
}

func leftFields(v *core.Left, m *tagged.Message) {
	m.Duration(1, "ttl", &v.TTL)
	m.Unsigned8(2, "gap", &v.Gap)
	m.OneOf(3, "how", (*uint8)(&v.How), hows)
	m.Signed(4, "at", (*int64)(&v.At))
	m.Number(5, "leases", &v.Leases)
	m.Text(6, "resource", &v.Resource)
	m.Text(7, "holder", &v.Holder)
}

func alarmFields(v *core.Alarm, m *tagged.Message) {
	m.OneOf(1, "kind", (*uint8)(&v.Kind), command.Alarms)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "id", &v.ID)
	m.Text(4, "holder", &v.Holder)
	m.Token(5, "token", &v.Token)
	m.Text(6, "session", &v.Session)
	m.Unsigned(7, "order", &v.Order)
	m.Signed(8, "since wall", &v.SinceWall)
	m.Signed(9, "last", (*int64)(&v.Last))
	m.Signed(10, "last wall", &v.LastWall)
	m.Number(11, "count", &v.Count)
	m.Text(12, "text", &v.Text)
	m.Number(13, "limit", &v.Limit)
	m.Flag(14, "quiet", &v.Quiet)
}

// owner is whose something is, if it is anybody's. Equal ones are one value after reading.
func owner(m *tagged.Message, tag uint8, p **access.Owner) {
	before := *p
	tagged.Maybe(m, tag, "owner", p, tagged.Of(m, ownerFields))
	owners, _ := m.Known.(map[access.Owner]*access.Owner)
	if *p == before || owners == nil {
		return
	}
	if known, ok := owners[**p]; ok {
		*p = known
		return
	}
	owners[**p] = *p
}

func ownerFields(v *access.Owner, m *tagged.Message) {
	m.Name(1, "principal", &v.Principal)
	m.Text(2, "group", &v.Group)
}

// event leaves out the namespace, which is that of its record.
func eventFields(v *leasehold.Event, m *tagged.Message) {
	m.Revision(1, "revision", &v.Revision)
	m.Unsigned32(2, "n", &v.N)
	m.OneOf(3, "kind", (*uint8)(&v.Kind), kinds)
	m.OneOf(4, "how", (*uint8)(&v.How), maybeHow)
	m.Moment(5, "at", &v.At)
	m.Moment(6, "until", &v.Until)
	m.Text(7, "resource", &v.Resource)
	m.Text(8, "id", &v.ID)
	m.Text(9, "holder", &v.Holder)
	m.Token(10, "token", &v.Token)
	m.Text(11, "session", &v.Session)
	m.Text(12, "by", &v.By)
	m.Text(13, "reason", &v.Reason)
	m.Text(14, "foreign", &v.Foreign)
	m.OneOf(15, "alarm", (*uint8)(&v.Alarm), maybeAlarm)
	tagged.Maybe(m, 16, "record", &v.Record, tagged.Of(m, recordFields))
	tagged.Maybe(m, 17, "previous", &v.Previous, tagged.Of(m, recordFields))
	tagged.Maybe(m, 18, "hold", &v.Hold, func(*leasehold.Hold) { holdFields(v, m) })
	owner(m, 19, &v.Owner)
}

// hold is the hold that an event ended. Whose it was is in the event already, unless the holder
// has changed.
func holdFields(e *leasehold.Event, m *tagged.Message) {
	v := e.Hold
	if e.Kind == leasehold.Changed {
		m.Text(1, "hold id", &v.ID)
		m.Text(2, "hold holder", &v.Holder)
		m.Token(3, "hold token", &v.Token)
	} else if !m.Writing {
		v.ID, v.Holder, v.Token = e.ID, e.Holder, e.Token
	} else if v.ID != e.ID || v.Holder != e.Holder || v.Token != e.Token {
		m.Fail("hold", "it is not the one that ended")
	}
	m.Moment(4, "hold since", &v.Since)
	m.Moment(5, "hold until", &v.Until)
	m.Duration(6, "hold waited", &v.Waited)
	m.Duration(7, "hold busy", &v.Busy)
	m.Duration(8, "hold idle", &v.Idle)
}

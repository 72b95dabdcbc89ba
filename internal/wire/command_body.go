package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// The fields of commands. The tag of a field and its type are in the log of every cluster: a field that is not needed
// any more leaves its tag unused.

// command describes the fields of each verb.
func (m *message) command(command core.Command) {
	switch v := command.(type) {
	case *core.OpenSession:
		m.openSession(v)
	case *core.RenewSession:
		m.renewSession(v)
	case *core.CloseSession:
		m.closeSession(v)
	case *core.Acquire:
		m.acquire(v)
	case *core.Renew:
		m.renew(v)
	case *core.Release:
		m.release(v)
	case *core.Change:
		m.change(v)
	case *core.Break:
		m.breakLease(v)
	case *core.Tick:
		m.flag(1, "short", &v.Short)
	case *core.Lead:
		m.lead(v)
	case *core.PutRecord:
		m.putRecord(v)
	case *core.DeleteRecord:
		m.deleteRecord(v)
	case *core.Txn:
		m.txn(v)
	case *core.Ask:
		m.ask(v)
	case *core.Move:
		m.move(v)
	case *core.Define:
		m.define(v)
	case *core.Undefine:
		m.undefine(v)
	case *core.Acknowledge:
		m.acknowledge(v)
	case *core.SetCaps:
		m.setCaps(v)
	case *core.EndQuarantine:
		m.endQuarantine(v)
	case *core.AcknowledgeAlarm:
		m.acknowledgeAlarm(v)
	case *core.RaiseTokens:
		m.raiseTokens(v)
	case *core.ChangeAccess:
		m.changeAccess(v)
	case *core.SetUnits:
		m.setUnits(v)
	case *core.Drain:
		m.drain(v)
	case *core.ReportUse:
		m.reportUse(v)
	case *core.PutTask:
		m.putTask(v)
	case *core.FinishTask:
		m.finishTask(v)
	case *core.Reserve:
		m.reserve(v)
	case *core.CancelReservation:
		m.cancelReservation(v)
	}
}

// request is the name by which a command is known if it is sent again.
func (m *message) request(v *core.Request) {
	m.text(1, "request key", &v.Key)
	m.text(2, "request session", &v.Session)
	m.unsigned(3, "request sequence", &v.Sequence)
}

// openSession begins a session, which lives for its ttl after each renewal.
func (m *message) openSession(v *core.OpenSession) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.duration(3, "ttl", &v.TTL)
	m.labels(4, "labels", &v.Labels)
	inner(m, 5, "request", &v.Request, m.request)
}

// renewSession is sent all the time, and so has nothing that it can do without.
func (m *message) renewSession(v *core.RenewSession) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
}

// closeSession ends a session, and with it what is bound to it.
func (m *message) closeSession(v *core.CloseSession) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.flag(3, "abandon", &v.Abandon)
	inner(m, 4, "request", &v.Request, m.request)
}

// acquire asks for a resource, for several, for a task or for what was reserved.
func (m *message) acquire(v *core.Acquire) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "id", &v.ID)
	m.number(4, "slots", &v.Slots)
	m.number(5, "capacity", &v.Capacity)
	maybe(m, 6, "select", &v.Select, m.selection)
	several(m, 7, "also", &v.Also, leasehold.MaxTogether, m.item)
	m.text(8, "holder", &v.Holder)
	m.labels(9, "labels", &v.Labels)
	m.text(10, "reason", &v.Reason)
	m.duration(11, "ttl", &v.TTL)
	m.oneOf(12, "pick", (*uint8)(&v.Pick), picks)
	m.text(13, "session", &v.Session)
	m.duration(14, "wait", &v.Wait)
	m.duration(15, "grace", &v.Grace)
	m.duration(16, "hold limit", &v.HoldLimit)
	m.number(17, "priority", &v.Priority)
	inner(m, 18, "request", &v.Request, m.request)
	m.text(19, "party", &v.Party)
	m.text(20, "foreign", &v.Foreign)
	m.flag(21, "may expire", &v.MayExpire)
	m.flag(22, "task", &v.Task)
	m.text(23, "reservation", &v.Reservation)
}

// item is one more resource that is asked for with the first.
func (m *message) item(v *core.Item) {
	m.name(1, "resource", &v.Resource)
	m.text(2, "id", &v.ID)
	m.number(3, "slots", &v.Slots)
	m.number(4, "capacity", &v.Capacity)
	maybe(m, 5, "select", &v.Select, m.selection)
}

// selection is which units of a pool are asked for.
func (m *message) selection(v *leasehold.Select) {
	m.text(1, "where", &v.Where)
	m.flag(2, "spread", &v.Spread)
	m.names(3, "units", &v.Units)
}

// renew is sent all the time. Its note is left as it was if it has none, and taken away if that is empty.
func (m *message) renew(v *core.Renew) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.mayText(3, "note", &v.Note)
}

// release gives back a lease, or withdraws from a queue.
func (m *message) release(v *core.Release) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	inner(m, 3, "request", &v.Request, m.request)
	m.text(4, "session", &v.Session)
	m.flag(5, "withdraw", &v.Withdraw)
}

// change is of the holder or the id of a lease, or of what its holder says about itself.
func (m *message) change(v *core.Change) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.text(3, "holder", &v.Holder)
	m.text(4, "new id", &v.NewID)
	m.text(5, "foreign", &v.Foreign)
	maybe(m, 6, "about", &v.About, m.about)
	inner(m, 7, "request", &v.Request, m.request)
}

// about is what a holder says about itself. It may take away all of that.
func (m *message) about(v *core.About) {
	m.text(1, "about holder", &v.Holder)
	m.text(2, "about reason", &v.Reason)
	m.labels(3, "about labels", &v.Labels)
}

// breakLease ends what somebody else has, at once or after a period.
func (m *message) breakLease(v *core.Break) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.text(3, "resource", &v.Resource)
	m.token(4, "token", &v.Token)
	m.flag(5, "all", &v.All)
	m.flag(6, "waiting", &v.Waiting)
	m.duration(7, "period", &v.Period)
	m.flag(8, "remains", &v.Remains)
	m.text(9, "by", &v.By)
	m.text(10, "reason", &v.Reason)
	inner(m, 11, "request", &v.Request, m.request)
}

// lead is the first command of a leader: whose clock stamps from now on.
func (m *message) lead(v *core.Lead) {
	m.unsigned(1, "node", &v.Node)
	m.text(2, "boot", &v.Boot)
	m.duration(3, "offset", &v.Offset)
}

// putRecord writes a record: a value, the name of a large one, or a former version.
func (m *message) putRecord(v *core.PutRecord) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "path", &v.Path)
	m.content(3, "value", &v.Value, &v.Large)
	m.revision(5, "from", &v.From)
	m.number(6, "keep", &v.Keep)
	m.text(7, "session", &v.Session)
	m.revision(8, "if revision", &v.IfRevision)
	m.flag(9, "if absent", &v.IfAbsent)
	inner(m, 10, "fence", &v.Fence, m.fence)
	m.text(11, "by", &v.By)
	m.text(12, "reason", &v.Reason)
	inner(m, 13, "request", &v.Request, m.request)
	maybe(m, 14, "link", &v.Link, m.link)
	m.flag(15, "keep link", &v.KeepLink)
}

// fence is the lease that a write is made under.
func (m *message) fence(v *core.Fence) {
	m.text(1, "fence lease", &v.Lease)
	m.token(2, "fence token", &v.Token)
}

// link is the claim that a record stands for.
func (m *message) link(v *core.Link) {
	m.text(1, "link resource", &v.Resource)
	m.text(2, "link id", &v.ID)
	m.text(3, "link holder", &v.Holder)
	m.labels(4, "link labels", &v.Labels)
	m.text(5, "link reason", &v.Reason)
	m.text(6, "link foreign", &v.Foreign)
	m.duration(7, "link ttl", &v.TTL)
	m.duration(8, "link grace", &v.Grace)
	m.flag(9, "link wait", &v.Wait)
	m.flag(10, "link may expire", &v.MayExpire)
	m.flag(11, "link stay", &v.Stay)
	m.text(12, "link mirror", &v.Mirror)
	m.flag(13, "link take", &v.Take)
}

// deleteRecord removes one record, or all in a range.
func (m *message) deleteRecord(v *core.DeleteRecord) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "path", &v.Path)
	m.flag(3, "range", &v.Range)
	m.text(4, "to", &v.To)
	m.revision(5, "if revision", &v.IfRevision)
	inner(m, 6, "fence", &v.Fence, m.fence)
	inner(m, 7, "request", &v.Request, m.request)
}

// txn compares, and then does one list of operations or the other.
func (m *message) txn(v *core.Txn) {
	m.text(1, "namespace", &v.Namespace)
	m.branches(v)
	inner(m, 5, "request", &v.Request, m.request)
}

// branches is what a transaction has in common with one that is nested in it.
func (m *message) branches(v *core.Txn) {
	several(m, 2, "if", &v.If, leasehold.MaxOps, m.compare)
	several(m, 3, "then", &v.Then, leasehold.MaxOps, m.op)
	several(m, 4, "else", &v.Else, leasehold.MaxOps, m.op)
}

// nested is a transaction in an operation of another one, which has the namespace and the request for both.
func (m *message) nested(v *core.Txn) {
	if v.Namespace != "" || v.Request != (core.Request{}) {
		(*codec)(m).fail("nested", "it has a namespace or a request of its own")
	}
	m.branches(v)
}

// part counts the comparisons and operations of a transaction, and of all that are nested in it.
func (m *message) part() {
	if m.parts++; m.parts > 3*leasehold.MaxOps {
		(*codec)(m).fail("nested", "there are more comparisons and operations than a transaction may have")
	}
}

// compare looks at one thing as it is before the transaction.
func (m *message) compare(v *core.Compare) {
	m.part()
	m.oneOf(1, "what", (*uint8)(&v.What), whats)
	m.oneOf(2, "is", (*uint8)(&v.Is), relations)
	m.text(3, "path", &v.Path)
	m.unsigned(4, "number", &v.Number)
	m.text(5, "text", &v.Text)
	m.flag(6, "compare range", &v.Range)
	m.text(7, "compare to", &v.To)
}

// op is one operation of a transaction. Which of the fields it has depends on what it does.
func (m *message) op(v *core.Op) {
	m.part()
	m.oneOf(1, "do", (*uint8)(&v.Do), doings)
	m.text(2, "path", &v.Path)
	m.flag(3, "range", &v.Range)
	m.text(4, "to", &v.To)
	m.content(5, "value", &v.Value, &v.Large)
	m.text(7, "session", &v.Session)
	m.revision(8, "from", &v.From)
	m.number(9, "keep", &v.Keep)
	m.number(10, "most", &v.Most)
	m.flag(11, "keys only", &v.KeysOnly)
	m.flag(12, "count", &v.Count)
	maybe(m, 13, "acquire", &v.Acquire, m.acquire)
	m.text(14, "id", &v.ID)
	maybe(m, 15, "link", &v.Link, m.link)
	m.flag(16, "keep link", &v.KeepLink)
	m.flag(17, "keep value", &v.KeepValue)
	m.flag(18, "keep session", &v.KeepSession)
	m.flag(19, "before", &v.Before)
	m.oneOf(20, "by order", (*uint8)(&v.Select.By), sortings)
	m.flag(21, "descend", &v.Select.Descend)
	m.revision(22, "min create", &v.Select.MinCreate)
	m.revision(23, "max create", &v.Select.MaxCreate)
	m.revision(24, "min mod", &v.Select.MinMod)
	m.revision(25, "max mod", &v.Select.MaxMod)
	maybe(m, 26, "nested", &v.Txn, m.nested)
}

// ask sends a message to who holds a resource.
func (m *message) ask(v *core.Ask) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "by", &v.By)
	m.text(4, "message", &v.Message)
	inner(m, 5, "request", &v.Request, m.request)
}

// move gives a waiter another place in its queue.
func (m *message) move(v *core.Move) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.number(3, "priority", &v.Priority)
	m.text(4, "by", &v.By)
	m.text(5, "reason", &v.Reason)
	inner(m, 6, "request", &v.Request, m.request)
}

// define sets what holds for a resource, or for all under a prefix, or some of that.
func (m *message) define(v *core.Define) {
	m.text(1, "namespace", &v.Namespace)
	inner(m, 2, "definition", &v.Definition, m.definition)
	m.text(3, "by", &v.By)
	m.text(4, "reason", &v.Reason)
	inner(m, 5, "request", &v.Request, m.request)
	m.unsigned(6, "fields", (*uint64)(&v.Fields))
	m.flag(7, "keep slots", &v.KeepSlots)
	m.revision(8, "if revision", &v.IfRevision)
}

// definition is all that holds for a resource, or for all under a prefix.
func (m *message) definition(v *leasehold.Definition) {
	m.text(1, "path", &v.Path)
	m.number(2, "capacity", &v.Capacity)
	m.names(3, "units", &v.Units)
	m.duration(4, "default ttl", &v.DefaultTTL)
	m.duration(5, "largest ttl", &v.LargestTTL)
	m.duration(6, "hold limit", &v.HoldLimit)
	m.duration(7, "grace", &v.Grace)
	m.duration(8, "expected", &v.Expected)
	m.oneOf(9, "unclean", (*uint8)(&v.Unclean), uncleans)
	m.revision(10, "revision", &v.Revision)
	several(m, 11, "limits", &v.Limits, leasehold.MaxUnitLimits, m.unitLimit)
	m.duration(12, "idle", &v.Idle)
	m.duration(13, "idle release", &v.IdleRelease)
	m.oneOf(14, "on reservation", (*uint8)(&v.OnReservation), atStarts)
	m.flag(15, "backfill", &v.Backfill)
}

// unitLimit bounds how many units of a pool somebody may have.
func (m *message) unitLimit(v *leasehold.UnitLimit) {
	m.oneOf(1, "by", (*uint8)(&v.By), limitsBy)
	m.text(2, "name", &v.Name)
	m.number(3, "most", &v.Most)
}

// undefine takes a definition away.
func (m *message) undefine(v *core.Undefine) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "path", &v.Path)
	m.text(3, "by", &v.By)
	m.text(4, "reason", &v.Reason)
	inner(m, 5, "request", &v.Request, m.request)
}

// acknowledge says that somebody looked at what an unclean end left behind.
func (m *message) acknowledge(v *core.Acknowledge) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.token(3, "token", &v.Token)
	m.text(4, "by", &v.By)
	m.text(5, "reason", &v.Reason)
	inner(m, 6, "request", &v.Request, m.request)
}

// acknowledgeAlarm makes an alarm quiet.
func (m *message) acknowledgeAlarm(v *core.AcknowledgeAlarm) {
	m.text(1, "namespace", &v.Namespace)
	m.oneOf(2, "kind", (*uint8)(&v.Kind), alarms)
	m.text(3, "resource", &v.Resource)
	m.text(4, "id", &v.ID)
	m.text(5, "session", &v.Session)
	m.unsigned(6, "order", &v.Order)
	m.text(7, "by", &v.By)
	m.text(8, "reason", &v.Reason)
	inner(m, 9, "request", &v.Request, m.request)
}

// setCaps changes how much there may be at most.
func (m *message) setCaps(v *core.SetCaps) {
	inner(m, 1, "caps", &v.Caps, m.caps)
	m.flag(2, "if unset", &v.IfUnset)
	m.text(3, "by", &v.By)
	m.text(4, "reason", &v.Reason)
}

// caps are how much there may be at most; those that are 0 stay as they are.
func (m *message) caps(v *leasehold.Caps) {
	m.number(1, "leases", &v.Leases)
	m.number(2, "sessions", &v.Sessions)
	m.number(3, "waiters", &v.Waiters)
	m.number(4, "namespaces", &v.Namespaces)
}

// endQuarantine ends the time after a restore in which nothing is granted.
func (m *message) endQuarantine(v *core.EndQuarantine) {
	m.unsigned(1, "base", &v.Base)
	m.text(2, "by", &v.By)
	m.text(3, "reason", &v.Reason)
}

// raiseTokens lets all later tokens be above one that somebody has seen.
func (m *message) raiseTokens(v *core.RaiseTokens) {
	m.text(1, "namespace", &v.Namespace)
	m.token(2, "above", &v.Above)
	m.text(3, "by", &v.By)
	m.text(4, "reason", &v.Reason)
}

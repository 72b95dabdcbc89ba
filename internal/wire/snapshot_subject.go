package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The fields of what the subjects around the kernel keep: records, tasks, pools, reservations, and who may do what. The
// parts of a policy are described with the command that changes them.

// record is a record of the dictionary.
func (m *message) record(v *leasehold.Record) {
	m.text(1, "path", &v.Path)
	m.content(2, "value", &v.Value, &v.Large)
	m.revision(4, "create", &v.Create)
	m.revision(5, "mod", &v.Mod)
	m.unsigned(6, "version", &v.Version)
	m.text(7, "session", &v.Session)
	m.token(8, "token", &v.Token)
	m.text(9, "lease", &v.Lease)
}

// shelf is how many former versions of a record are kept.
func (m *message) shelf(v *core.Shelf) {
	m.text(1, "path", &v.Path)
	m.number(2, "keep", &v.Keep)
	m.time(3, "deleted", &v.Deleted)
	m.signed(4, "written", &v.Written)
	m.text(5, "holder", &v.Holder)
}

// version is a former version of a record. The current one is the record itself and is never
// written as a version.
func (m *message) version(v *leasehold.Version) {
	m.text(1, "path", &v.Path)
	m.content(2, "value", &v.Value, &v.Large)
	m.revision(4, "revision", &v.Revision)
	m.revision(5, "create", &v.Create)
	m.unsigned(6, "version", &v.Version)
	m.moment(7, "written", &v.Written)
	m.text(8, "holder", &v.Holder)
	m.text(9, "session", &v.Session)
	m.token(10, "token", &v.Token)
	m.flag(11, "deleted", &v.Deleted)
	if v.Current {
		(*codec)(m).fail("current", "it is a former one")
	}
}

// mirror is a resource whose claims are records below a prefix.
func (m *message) mirror(v *core.Mirror) {
	m.text(1, "resource", &v.Resource)
	m.text(2, "prefix", &v.Prefix)
}

func (m *message) recordOwner(v *core.RecordOwner) {
	m.text(1, "path", &v.Path)
	m.owner(2, &v.Owner)
	m.must("owner", v.Owner != nil)
}

func (m *message) claimOwner(v *core.ClaimOwner) {
	m.text(1, "id", &v.ID)
	m.owner(2, &v.Owner)
	m.must("owner", v.Owner != nil)
}

func (m *message) policyHead(v *core.PolicyHead) {
	m.unsigned(1, "revision", &v.Revision)
	inner(m, 2, "declared", &v.Declared, m.declaration)
}

// revocation is a lease that has to end, since its owner may not have it any more.
func (m *message) revocation(v *core.Revocation) {
	m.unsigned(1, "order", &v.Order)
	m.text(2, "by", &v.By)
	m.text(3, "namespace", &v.Space)
	m.text(4, "id", &v.ID)
}

func (m *message) loss(v *core.Loss) {
	m.unsigned(1, "order", &v.Order)
	m.text(2, "principal", &v.Principal)
	m.text(3, "group", &v.Group)
	m.text(4, "namespace", &v.Namespace)
	m.text(5, "prefix", &v.Prefix)
}

func (m *message) withdrawal(v *core.Withdrawal) {
	m.text(1, "by", &v.By)
	m.time(2, "at", &v.At)
	m.text(3, "namespace", &v.Space)
	m.text(4, "resource", &v.Resource)
	m.number(5, "priority", &v.Priority)
	m.unsigned(6, "order", &v.Order)
}

// task leaves out the namespace, which is that of its record.
func (m *message) task(v *leasehold.Task) {
	m.text(1, "path", &v.Path)
	m.oneOf(2, "state", (*uint8)(&v.State), taskStates)
	m.number(3, "priority", &v.Priority)
	m.number(4, "attempts", &v.Attempts)
	m.number(5, "max attempts", &v.MaxAttempts)
	m.text(6, "lease", &v.Lease)
	m.text(7, "holder", &v.Holder)
	m.token(8, "token", &v.Token)
	m.text(9, "result", &v.Result)
	m.moment(10, "changed", &v.Changed)
	m.unsigned(11, "order", &v.Order)
}

// poolUnit is a unit of a pool. Which lease has it is told by the lease.
func (m *message) poolUnit(v *pool.Unit) {
	m.text(1, "pool", &v.Pool)
	m.text(2, "host", &v.Host)
	m.text(3, "name", &v.Name)
	m.labels(4, "labels", &v.Labels)
	m.text(5, "unfit", &v.Unfit)
	m.text(6, "drained", &v.Drained)
	m.flag(7, "removed", &v.Removed)
	m.text(8, "holder", &v.Holder)
	m.time(9, "freed", &v.Freed)
}

// unitUse is how a unit is used.
func (m *message) unitUse(v *core.UnitUse) {
	m.text(1, "pool", &v.Pool)
	m.text(2, "unit", &v.Unit)
	m.time(3, "at", &v.Use.At)
	m.number(4, "percent", &v.Use.Percent)
	m.number(5, "memory", &v.Use.Memory)
	several(m, 6, "strangers", &v.Use.Strangers, maxListed, m.stranger)
	m.time(7, "idle", &v.Use.Idle)
	m.time(8, "asked", &v.Use.Asked)
	m.duration(9, "busy", &v.Use.Busy)
	m.duration(10, "unused", &v.Use.Unused)
}

// stranger is a process that uses a unit without a lease.
func (m *message) stranger(v *pool.Process) {
	m.number(1, "pid", &v.PID)
	m.text(2, "user", &v.User)
	m.text(3, "name", &v.Name)
}

// quietQueue is until when the queue of a pool need not be looked at.
func (m *message) quietQueue(v *core.QuietQueue) {
	m.text(1, "pool", &v.Pool)
	m.time(2, "until", &v.Until)
}

// calendar is what day it is for reservations.
func (m *message) calendar(v *core.Calendar) { m.date(1, "date", &v.Date) }

func (m *message) reservation(v *reservation.Reservation) {
	m.text(1, "id", &v.ID)
	m.text(2, "resource", &v.Resource)
	m.text(3, "holder", &v.Holder)
	m.text(4, "reason", &v.Reason)
	m.unsigned32(5, "slots", &v.Slots)
	maybe(m, 6, "select", &v.Select, m.selection)
	m.date(7, "from", &v.From)
	m.date(8, "until", &v.Until)
	m.text(9, "series", &v.Series)
	m.owner(10, &v.Owner)
	m.names(11, "units", &v.Units)
	m.flag(12, "told", &v.Told)
	m.flag(13, "begun", &v.Begun)
	m.date(14, "claim by", &v.ClaimBy)
	m.text(15, "lease", &v.Lease)
	m.date(16, "over", &v.Over)
	m.text(17, "why", &v.Why)
}

// series is a reservation that recurs. Its occurrences are records of their own.
func (m *message) series(v *reservation.Series) {
	m.text(1, "id", &v.ID)
	m.text(2, "resource", &v.Resource)
	m.text(3, "holder", &v.Holder)
	m.text(4, "reason", &v.Reason)
	m.unsigned32(5, "slots", &v.Slots)
	maybe(m, 6, "select", &v.Select, m.selection)
	inner(m, 7, "rule", &v.Rule, m.rule)
	m.date(8, "expanded", &v.Expanded)
	m.owner(9, &v.Owner)
}

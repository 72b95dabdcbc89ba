package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// The fields of what the subjects around the kernel keep: records, tasks, pools, reservations, and who may do what. The
// parts of a policy are described with the command that changes them.

// record is a record of the dictionary.
func recordFields(v *leasehold.Record, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.Content(2, "value", &v.Value, &v.Large)
	m.Revision(4, "create", &v.Create)
	m.Revision(5, "mod", &v.Mod)
	m.Unsigned(6, "version", &v.Version)
	m.Text(7, "session", &v.Session)
	m.Token(8, "token", &v.Token)
	m.Text(9, "lease", &v.Lease)
}

// shelf is how many former versions of a record are kept.
func shelfFields(v *core.Shelf, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.Number(2, "keep", &v.Keep)
	m.Signed(3, "deleted", (*int64)(&v.Deleted))
	m.Signed(4, "written", &v.Written)
	m.Text(5, "holder", &v.Holder)
}

// version is a former version of a record. The current one is the record itself and is never
// written as a version.
func versionFields(v *leasehold.Version, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.Content(2, "value", &v.Value, &v.Large)
	m.Revision(4, "revision", &v.Revision)
	m.Revision(5, "create", &v.Create)
	m.Unsigned(6, "version", &v.Version)
	m.Moment(7, "written", &v.Written)
	m.Text(8, "holder", &v.Holder)
	m.Text(9, "session", &v.Session)
	m.Token(10, "token", &v.Token)
	m.Flag(11, "deleted", &v.Deleted)
	if v.Current {
		m.Fail("current", "it is a former one")
	}
}

// mirror is a resource whose claims are records below a prefix.
func mirrorFields(v *core.Mirror, m *tagged.Message) {
	m.Text(1, "resource", &v.Resource)
	m.Text(2, "prefix", &v.Prefix)
}

func recordOwnerFields(v *core.RecordOwner, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	owner(m, 2, &v.Owner)
	m.Must("owner", v.Owner != nil)
}

func claimOwnerFields(v *core.ClaimOwner, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	owner(m, 2, &v.Owner)
	m.Must("owner", v.Owner != nil)
}

func policyHeadFields(v *core.PolicyHead, m *tagged.Message) {
	m.Unsigned(1, "revision", &v.Revision)
	tagged.Inner(m, 2, "declared", &v.Declared, tagged.Of(m, command.DescribeDeclaration))
}

// revocation is a lease that has to end, since its owner may not have it any more.
func revocationFields(v *core.Revocation, m *tagged.Message) {
	m.Unsigned(1, "order", &v.Order)
	m.Text(2, "by", &v.By)
	m.Text(3, "namespace", &v.Space)
	m.Text(4, "id", &v.ID)
}

func lossFields(v *core.Loss, m *tagged.Message) {
	m.Unsigned(1, "order", &v.Order)
	m.Text(2, "principal", &v.Principal)
	m.Text(3, "group", &v.Group)
	m.Text(4, "namespace", &v.Namespace)
	m.Text(5, "prefix", &v.Prefix)
}

func withdrawalFields(v *core.Withdrawal, m *tagged.Message) {
	m.Text(1, "by", &v.By)
	m.Signed(2, "at", (*int64)(&v.At))
	m.Text(3, "namespace", &v.Space)
	m.Text(4, "resource", &v.Resource)
	m.Number(5, "priority", &v.Priority)
	m.Unsigned(6, "order", &v.Order)
}

// task leaves out the namespace, which is that of its record.
func taskFields(v *leasehold.Task, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.OneOf(2, "state", (*uint8)(&v.State), taskStates)
	m.Number(3, "priority", &v.Priority)
	m.Number(4, "attempts", &v.Attempts)
	m.Number(5, "max attempts", &v.MaxAttempts)
	m.Text(6, "lease", &v.Lease)
	m.Text(7, "holder", &v.Holder)
	m.Token(8, "token", &v.Token)
	m.Text(9, "result", &v.Result)
	m.Moment(10, "changed", &v.Changed)
	m.Unsigned(11, "order", &v.Order)
}

// poolUnit is a unit of a pool. Which lease has it is told by the lease.
func poolUnitFields(v *pool.Unit, m *tagged.Message) {
	m.Text(1, "pool", &v.Pool)
	m.Text(2, "host", &v.Host)
	m.Text(3, "name", &v.Name)
	m.Labels(4, "labels", &v.Labels)
	m.Text(5, "unfit", &v.Unfit)
	m.Text(6, "drained", &v.Drained)
	m.Flag(7, "removed", &v.Removed)
	m.Text(8, "holder", &v.Holder)
	m.Signed(9, "freed", (*int64)(&v.Freed))
}

// unitUse is how a unit is used.
func unitUseFields(v *core.UnitUse, m *tagged.Message) {
	m.Text(1, "pool", &v.Pool)
	m.Text(2, "unit", &v.Unit)
	m.Signed(3, "at", (*int64)(&v.Use.At))
	m.Number(4, "percent", &v.Use.Percent)
	m.Number(5, "memory", &v.Use.Memory)
	tagged.Several(m, 6, "strangers", &v.Use.Strangers, maxListed, tagged.Of(m, strangerFields))
	m.Signed(7, "idle", (*int64)(&v.Use.Idle))
	m.Signed(8, "asked", (*int64)(&v.Use.Asked))
	m.Duration(9, "busy", &v.Use.Busy)
	m.Duration(10, "unused", &v.Use.Unused)
}

// stranger is a process that uses a unit without a lease.
func strangerFields(v *pool.Process, m *tagged.Message) {
	m.Number(1, "pid", &v.PID)
	m.Text(2, "user", &v.User)
	m.Text(3, "name", &v.Name)
}

// quietQueueFields say until when the queue of a pool need not be looked at.
func quietQueueFields(v *core.QuietQueue, m *tagged.Message) {
	m.Text(1, "pool", &v.Pool)
	m.Signed(2, "until", (*int64)(&v.Until))
}

// calendar is what day it is for reservations.
func calendarFields(v *core.Calendar, m *tagged.Message) { m.Signed(1, "date", (*int64)(&v.Date)) }

func reservationFields(v *reservation.Reservation, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "holder", &v.Holder)
	m.Text(4, "reason", &v.Reason)
	m.Unsigned32(5, "slots", &v.Slots)
	tagged.Maybe(m, 6, "select", &v.Select, tagged.Of(m, command.DescribeSelect))
	m.Signed(7, "from", (*int64)(&v.From))
	m.Signed(8, "until", (*int64)(&v.Until))
	m.Text(9, "series", &v.Series)
	owner(m, 10, &v.Owner)
	m.Names(11, "units", &v.Units)
	m.Flag(12, "told", &v.Told)
	m.Flag(13, "begun", &v.Begun)
	m.Signed(14, "claim by", (*int64)(&v.ClaimBy))
	m.Text(15, "lease", &v.Lease)
	m.Signed(16, "over", (*int64)(&v.Over))
	m.Text(17, "why", &v.Why)
}

// series is a reservation that recurs. Its occurrences are records of their own.
func seriesFields(v *reservation.Series, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "holder", &v.Holder)
	m.Text(4, "reason", &v.Reason)
	m.Unsigned32(5, "slots", &v.Slots)
	tagged.Maybe(m, 6, "select", &v.Select, tagged.Of(m, command.DescribeSelect))
	tagged.Inner(m, 7, "rule", &v.Rule, tagged.Of(m, command.DescribeRule))
	m.Signed(8, "expanded", (*int64)(&v.Expanded))
	owner(m, 9, &v.Owner)
}

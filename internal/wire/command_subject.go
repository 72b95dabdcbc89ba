package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The fields of commands about access, pools, tasks and reservations.

// changeAccess changes who may do what, or notes when tokens were used.
func (m *message) changeAccess(v *core.ChangeAccess) {
	inner(m, 1, "remove", &v.Remove, m.accessKeys)
	inner(m, 2, "put", &v.Put, m.accessItems)
	m.flag(3, "replace", &v.Replace)
	m.flag(4, "off", &v.Off)
	m.unsigned(5, "if revision", &v.IfRevision)
	m.flag(6, "if none", &v.IfNone)
	m.signed(7, "wall", &v.Wall)
	m.text(8, "by", &v.By)
	m.text(9, "reason", &v.Reason)
	inner(m, 10, "declared", &v.Declared, m.declaration)
	several(m, 11, "used", &v.Used, access.MaxChange, m.use)
}

// accessKeys are the parts of a policy that are removed.
func (m *message) accessKeys(v *access.Keys) {
	m.names(1, "remove tokens", &v.Tokens)
	m.names(2, "remove roles", &v.Roles)
	m.names(3, "remove bindings", &v.Bindings)
	m.names(4, "remove quotas", &v.Quotas)
	m.names(5, "remove issuers", &v.Issuers)
	m.names(6, "remove certificates", &v.Certificates)
}

// accessItems are the parts of a policy that are put.
func (m *message) accessItems(v *access.Items) {
	items(m, 1, "tokens", &v.Tokens, m.accessToken)
	items(m, 2, "roles", &v.Roles, m.accessRole)
	items(m, 3, "bindings", &v.Bindings, m.accessBinding)
	items(m, 4, "quotas", &v.Quotas, m.accessQuota)
	items(m, 5, "issuers", &v.Issuers, m.accessIssuer)
	items(m, 6, "certificates", &v.Certificates, m.accessCertificate)
}

// items is several for those that are kept by pointers.
func items[T any](m *message, tag uint8, field string, p *[]*T, fields func(*T)) {
	several(m, tag, field, p, access.MaxChange, func(item **T) {
		if !m.writing {
			*item = new(T)
		}
		fields(*item)
	})
}

// use is about when a token was last used.
func (m *message) use(v *access.Use) {
	m.text(1, "token", &v.ID)
	m.signed(2, "wall", &v.Wall)
}

// declaration is the file that a server applies.
func (m *message) declaration(v *access.Declaration) {
	m.text(1, "file hash", &v.Hash)
	m.text(2, "server", &v.Server)
}

// accessToken has the hash of a token, and never the token.
func (m *message) accessToken(v *access.Token) {
	m.name(1, "id", &v.ID)
	m.text(2, "hash", &v.Hash)
	m.text(3, "principal", &v.Principal)
	m.names(4, "groups", &v.Groups)
	m.text(5, "description", &v.Description)
	m.signed(6, "created wall", &v.CreatedWall)
	m.text(7, "created by", &v.CreatedBy)
	m.signed(8, "expires wall", &v.ExpiresWall)
	m.signed(9, "used wall", &v.UsedWall)
}

// accessRole says which verbs are allowed, on everything and on what is one's own.
func (m *message) accessRole(v *access.Role) {
	m.name(1, "name", &v.Name)
	m.unsigned32(2, "any", (*uint32)(&v.Any))
	m.unsigned32(3, "own", (*uint32)(&v.Own))
	m.flag(4, "end on revoke", &v.EndOnRevoke)
}

// accessBinding gives a role to a principal or a group, in a namespace and below a prefix.
func (m *message) accessBinding(v *access.Binding) {
	m.name(1, "name", &v.Name)
	m.text(2, "role", &v.Role)
	m.text(3, "principal", &v.Principal)
	m.text(4, "group", &v.Group)
	m.text(5, "namespace", &v.Namespace)
	m.text(6, "prefix", &v.Prefix)
	m.text(7, "holders", &v.Holders)
}

// accessQuota is how much a principal may have and ask for.
func (m *message) accessQuota(v *access.Quota) {
	m.text(1, "principal", &v.Principal)
	m.text(2, "namespace", &v.Namespace)
	m.must("principal", v.Principal != "" || v.Namespace != "")
	m.signed(3, "leases", &v.Leases)
	m.signed(4, "sessions", &v.Sessions)
	m.signed(5, "waiters", &v.Waiters)
	m.signed(6, "records", &v.Records)
	m.signed(7, "bytes", &v.Bytes)
	m.signed(8, "watches", &v.Watches)
	m.signed(9, "requests", &v.Requests)
	m.signed(10, "renewals", &v.Renewals)
}

// accessIssuer is who signs tokens that are believed, and how their claims are read.
func (m *message) accessIssuer(v *access.Issuer) {
	m.name(1, "name", &v.Name)
	m.text(2, "url", &v.URL)
	m.names(3, "audiences", &v.Audiences)
	m.text(4, "keys", &v.Keys)
	m.text(5, "principal", &v.Principal)
	several(m, 6, "groups", &v.Groups, access.MaxRules, m.claimRule)
}

// claimRule is the group that a claim with a value gives.
func (m *message) claimRule(v *access.ClaimRule) {
	m.name(1, "claim", &v.Claim)
	m.text(2, "value", &v.Value)
	m.text(3, "group", &v.Group)
}

// accessCertificate maps certificates of clients to a principal.
func (m *message) accessCertificate(v *access.Certificate) {
	m.name(1, "name", &v.Name)
	m.text(2, "san", &v.SAN)
	m.text(3, "principal", &v.Principal)
	m.names(4, "groups", &v.Groups)
}

// setUnits says which units a host has.
func (m *message) setUnits(v *core.SetUnits) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "host", &v.Host)
	several(m, 4, "units", &v.Units, leasehold.MaxHostUnits, m.hostUnit)
	m.text(5, "by", &v.By)
	m.text(6, "reason", &v.Reason)
	inner(m, 7, "request", &v.Request, m.request)
}

// hostUnit is a unit as its host describes it.
func (m *message) hostUnit(v *core.HostUnit) {
	m.name(1, "name", &v.Name)
	m.labels(2, "labels", &v.Labels)
	m.text(3, "unfit", &v.Unfit)
}

// drain keeps units from being granted.
func (m *message) drain(v *core.Drain) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.names(3, "units", &v.Units)
	m.text(4, "why", &v.Why)
	m.text(5, "by", &v.By)
	inner(m, 6, "request", &v.Request, m.request)
}

// reportUse is what a host says of how its units are used.
func (m *message) reportUse(v *core.ReportUse) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "host", &v.Host)
	several(m, 4, "units", &v.Units, leasehold.MaxHostUnits, m.unitReport)
	m.text(5, "by", &v.By)
	inner(m, 6, "request", &v.Request, m.request)
}

// unitReport is how one unit is used.
func (m *message) unitReport(v *core.UnitReport) {
	m.name(1, "name", &v.Name)
	m.number(2, "percent", &v.Percent)
	m.number(3, "memory", &v.Memory)
	several(m, 4, "processes", &v.Processes, leasehold.MaxUnitProcesses, m.unitProcess)
	m.text(5, "unfit", &v.Unfit)
}

// unitProcess is a process that uses a unit.
func (m *message) unitProcess(v *core.UnitProcess) {
	m.number(1, "pid", &v.PID)
	m.text(2, "user", &v.User)
	m.text(3, "name", &v.Name)
	m.text(4, "lease", &v.Lease)
}

// putTask puts a task into a folder.
func (m *message) putTask(v *core.PutTask) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "path", &v.Path)
	m.text(3, "value", &v.Value)
	m.number(4, "priority", &v.Priority)
	m.number(5, "attempts", &v.Attempts)
	m.text(6, "by", &v.By)
	inner(m, 7, "request", &v.Request, m.request)
}

// finishTask says what a task came to.
func (m *message) finishTask(v *core.FinishTask) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.token(3, "token", &v.Token)
	m.flag(4, "failed", &v.Failed)
	m.text(5, "result", &v.Result)
	m.text(6, "session", &v.Session)
	inner(m, 7, "request", &v.Request, m.request)
}

// reserve is one reservation, or a series with its first occurrences, or more of those.
func (m *message) reserve(v *core.Reserve) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.text(3, "resource", &v.Resource)
	m.number(4, "slots", &v.Slots)
	maybe(m, 5, "select", &v.Select, m.selection)
	m.text(6, "holder", &v.Holder)
	m.text(7, "reason", &v.Reason)
	m.date(8, "from", &v.From)
	m.duration(9, "length", &v.Length)
	inner(m, 10, "request", &v.Request, m.request)
	maybe(m, 11, "rule", &v.Rule, m.rule)
	m.dates(12, "starts", &v.Starts)
	m.date(13, "after", &v.After)
	m.date(14, "to", &v.To)
}

// date is a moment of the calendar, in Unix nanoseconds.
func (m *message) date(tag uint8, field string, v *reservation.Moment) {
	m.signed(tag, field, (*int64)(v))
}

func (m *message) dates(tag uint8, field string, p *[]reservation.Moment) {
	values(m, tag, field, p, func(at *reservation.Moment) { (*codec)(m).signed(field, (*int64)(at)) })
}

// rule says when a reservation recurs. Only doors know what its zone means.
func (m *message) rule(v *leasehold.Rule) {
	m.text(1, "zone", &v.Zone)
	m.unsigned8(2, "days", (*uint8)(&v.Days))
	m.duration(3, "at", &v.At)
	m.duration(4, "length", &v.Length)
	m.moment(5, "until", &v.Until)
}

// cancelReservation is of one reservation or of a series.
func (m *message) cancelReservation(v *core.CancelReservation) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.text(3, "by", &v.By)
	m.text(4, "reason", &v.Reason)
	inner(m, 5, "request", &v.Request, m.request)
}

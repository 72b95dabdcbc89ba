package command

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// The fields of commands about access, pools, tasks and reservations.

func (c *ChangeAccess) describe(m *tagged.Message) {
	tagged.Inner(m, 1, "remove", &c.Remove, tagged.Of(m, accessKeys))
	tagged.Inner(m, 2, "put", &c.Put, tagged.Of(m, accessItems))
	m.Flag(3, "replace", &c.Replace)
	m.Flag(4, "off", &c.Off)
	m.Unsigned(5, "if revision", &c.IfRevision)
	m.Flag(6, "if none", &c.IfNone)
	m.Signed(7, "wall", &c.Wall)
	m.Text(8, "by", &c.By)
	m.Text(9, "reason", &c.Reason)
	tagged.Inner(m, 10, "declared", &c.Declared, tagged.Of(m, DescribeDeclaration))
	tagged.Several(m, 11, "used", &c.Used, access.MaxChange, tagged.Of(m, tokenUse))
}

// accessKeys describes the parts of a policy that are removed.
func accessKeys(v *access.Keys, m *tagged.Message) {
	m.Names(1, "remove tokens", &v.Tokens)
	m.Names(2, "remove roles", &v.Roles)
	m.Names(3, "remove bindings", &v.Bindings)
	m.Names(4, "remove quotas", &v.Quotas)
	m.Names(5, "remove issuers", &v.Issuers)
	m.Names(6, "remove certificates", &v.Certificates)
}

// accessItems describes the parts of a policy that are put.
func accessItems(v *access.Items, m *tagged.Message) {
	items(m, 1, "tokens", &v.Tokens, tagged.Of(m, DescribeToken))
	items(m, 2, "roles", &v.Roles, tagged.Of(m, DescribeRole))
	items(m, 3, "bindings", &v.Bindings, tagged.Of(m, DescribeBinding))
	items(m, 4, "quotas", &v.Quotas, tagged.Of(m, DescribeQuota))
	items(m, 5, "issuers", &v.Issuers, tagged.Of(m, DescribeIssuer))
	items(m, 6, "certificates", &v.Certificates, tagged.Of(m, DescribeCertificate))
}

// items is several for those that are kept by pointers.
func items[T any](m *tagged.Message, tag uint8, field string, p *[]*T, fields func(*T)) {
	tagged.Several(m, tag, field, p, access.MaxChange, func(item **T) {
		if !m.Writing {
			*item = new(T)
		}
		fields(*item)
	})
}

// tokenUse describes when a token was last used.
func tokenUse(v *access.Use, m *tagged.Message) {
	m.Text(1, "token", &v.ID)
	m.Signed(2, "wall", &v.Wall)
}

// DescribeDeclaration describes the file that a server applies.
func DescribeDeclaration(v *access.Declaration, m *tagged.Message) {
	m.Text(1, "file hash", &v.Hash)
	m.Text(2, "server", &v.Server)
}

// DescribeToken describes a token by its hash, and never has the token itself.
func DescribeToken(v *access.Token, m *tagged.Message) {
	m.Name(1, "id", &v.ID)
	m.Text(2, "hash", &v.Hash)
	m.Text(3, "principal", &v.Principal)
	m.Names(4, "groups", &v.Groups)
	m.Text(5, "description", &v.Description)
	m.Signed(6, "created wall", &v.CreatedWall)
	m.Text(7, "created by", &v.CreatedBy)
	m.Signed(8, "expires wall", &v.ExpiresWall)
	m.Signed(9, "used wall", &v.UsedWall)
}

// DescribeRole describes which verbs are allowed, on everything and on what is one's own.
func DescribeRole(v *access.Role, m *tagged.Message) {
	m.Name(1, "name", &v.Name)
	m.Unsigned32(2, "any", (*uint32)(&v.Any))
	m.Unsigned32(3, "own", (*uint32)(&v.Own))
	m.Flag(4, "end on revoke", &v.EndOnRevoke)
}

// DescribeBinding describes who has a role, in a namespace and below a prefix.
func DescribeBinding(v *access.Binding, m *tagged.Message) {
	m.Name(1, "name", &v.Name)
	m.Text(2, "role", &v.Role)
	m.Text(3, "principal", &v.Principal)
	m.Text(4, "group", &v.Group)
	m.Text(5, "namespace", &v.Namespace)
	m.Text(6, "prefix", &v.Prefix)
	m.Text(7, "holders", &v.Holders)
}

// DescribeQuota describes how much a principal may have and ask for.
func DescribeQuota(v *access.Quota, m *tagged.Message) {
	m.Text(1, "principal", &v.Principal)
	m.Text(2, "namespace", &v.Namespace)
	m.Must("principal", v.Principal != "" || v.Namespace != "")
	m.Signed(3, "leases", &v.Leases)
	m.Signed(4, "sessions", &v.Sessions)
	m.Signed(5, "waiters", &v.Waiters)
	m.Signed(6, "records", &v.Records)
	m.Signed(7, "bytes", &v.Bytes)
	m.Signed(8, "watches", &v.Watches)
	m.Signed(9, "requests", &v.Requests)
	m.Signed(10, "renewals", &v.Renewals)
}

// DescribeIssuer describes who signs tokens that are believed, and how their claims are read.
func DescribeIssuer(v *access.Issuer, m *tagged.Message) {
	m.Name(1, "name", &v.Name)
	m.Text(2, "url", &v.URL)
	m.Names(3, "audiences", &v.Audiences)
	m.Text(4, "keys", &v.Keys)
	m.Text(5, "principal", &v.Principal)
	tagged.Several(m, 6, "groups", &v.Groups, access.MaxRules, tagged.Of(m, claimRule))
}

// claimRule describes the group that a claim with a value gives.
func claimRule(v *access.ClaimRule, m *tagged.Message) {
	m.Name(1, "claim", &v.Claim)
	m.Text(2, "value", &v.Value)
	m.Text(3, "group", &v.Group)
}

// DescribeCertificate describes what maps certificates of clients to a principal.
func DescribeCertificate(v *access.Certificate, m *tagged.Message) {
	m.Name(1, "name", &v.Name)
	m.Text(2, "san", &v.SAN)
	m.Text(3, "principal", &v.Principal)
	m.Names(4, "groups", &v.Groups)
}

func (c *SetUnits) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Text(3, "host", &c.Host)
	tagged.Several(m, 4, "units", &c.Units, leasehold.MaxHostUnits, tagged.Of(m, (*HostUnit).describe))
	m.Text(aside|5, "by", &c.By)
	m.Text(aside|6, "reason", &c.Reason)
	c.Request.in(m, 7)
}

func (u *HostUnit) describe(m *tagged.Message) {
	m.Name(1, "name", &u.Name)
	m.Labels(2, "labels", &u.Labels)
	m.Text(3, "unfit", &u.Unfit)
}

func (c *Drain) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Names(3, "units", &c.Units)
	m.Text(4, "why", &c.Why)
	m.Text(aside|5, "by", &c.By)
	c.Request.in(m, 6)
}

func (c *ReportUse) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Text(3, "host", &c.Host)
	tagged.Several(m, 4, "units", &c.Units, leasehold.MaxHostUnits, tagged.Of(m, (*UnitReport).describe))
	m.Text(aside|5, "by", &c.By)
	c.Request.in(m, 6)
}

func (u *UnitReport) describe(m *tagged.Message) {
	m.Name(1, "name", &u.Name)
	m.Number(2, "percent", &u.Percent)
	m.Number(3, "memory", &u.Memory)
	tagged.Several(m, 4, "processes", &u.Processes, leasehold.MaxUnitProcesses, tagged.Of(m, (*UnitProcess).describe))
	m.Text(5, "unfit", &u.Unfit)
}

func (c *UnitProcess) describe(m *tagged.Message) {
	m.Number(1, "pid", &c.PID)
	m.Text(2, "user", &c.User)
	m.Text(3, "name", &c.Name)
	m.Text(4, "lease", &c.Lease)
}

func (c *PutTask) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "path", &c.Path)
	m.Text(3, "value", &c.Value)
	m.Number(4, "priority", &c.Priority)
	m.Number(5, "attempts", &c.Attempts)
	m.Text(aside|6, "by", &c.By)
	c.Request.in(m, 7)
}

func (c *FinishTask) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Token(3, "token", &c.Token)
	m.Flag(4, "failed", &c.Failed)
	m.Text(5, "result", &c.Result)
	m.Text(aside|6, "session", &c.Session)
	c.Request.in(m, 7)
}

func (c *Reserve) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Text(3, "resource", &c.Resource)
	m.Number(4, "slots", &c.Slots)
	tagged.Maybe(m, 5, "select", &c.Select, tagged.Of(m, DescribeSelect))
	m.Text(6, "holder", &c.Holder)
	m.Text(aside|7, "reason", &c.Reason)
	m.Signed(8, "from", (*int64)(&c.From))
	m.Duration(9, "length", &c.Length)
	c.Request.in(m, 10)
	tagged.Maybe(m, 11, "rule", &c.Rule, tagged.Of(m, DescribeRule))
	tagged.Values(m, aside|12, "starts", &c.Starts, func(at *reservation.Moment) {
		m.Codec().Signed("starts", (*int64)(at))
	})
	m.Signed(13, "after", (*int64)(&c.After))
	m.Signed(aside|14, "to", (*int64)(&c.To))
}

// DescribeRule describes when a reservation recurs. Only doors know what its zone means.
func DescribeRule(v *leasehold.Rule, m *tagged.Message) {
	m.Text(1, "zone", &v.Zone)
	m.Unsigned8(2, "days", (*uint8)(&v.Days))
	m.Duration(3, "at", &v.At)
	m.Duration(4, "length", &v.Length)
	m.Moment(5, "until", &v.Until)
}

func (c *CancelReservation) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Text(aside|3, "by", &c.By)
	m.Text(aside|4, "reason", &c.Reason)
	c.Request.in(m, 5)
}

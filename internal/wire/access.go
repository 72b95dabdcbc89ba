package wire

import (
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Who may do what: the parts of a policy, as a command changes them and as a snapshot keeps them.

func (c *codec) declaration(v *access.Declaration) {
	c.text("file hash", &v.Hash)
	c.text("server", &v.Server)
}

func (c *codec) accessToken(v *access.Token) {
	c.text("id", &v.ID)
	c.text("hash", &v.Hash)
	c.text("principal", &v.Principal)
	c.names("groups", &v.Groups)
	c.text("description", &v.Description)
	c.signed("created wall", &v.CreatedWall)
	c.text("created by", &v.CreatedBy)
	c.signed("expires wall", &v.ExpiresWall)
	c.signed("used wall", &v.UsedWall)
}

func (c *codec) accessRole(v *access.Role) {
	c.text("name", &v.Name)
	c.unsigned32("any", (*uint32)(&v.Any))
	c.unsigned32("own", (*uint32)(&v.Own))
	c.flag("end on revoke", &v.EndOnRevoke)
}

func (c *codec) accessBinding(v *access.Binding) {
	c.text("name", &v.Name)
	c.text("role", &v.Role)
	c.text("principal", &v.Principal)
	c.text("group", &v.Group)
	c.text("namespace", &v.Namespace)
	c.text("prefix", &v.Prefix)
	c.text("holders", &v.Holders)
}

func (c *codec) accessQuota(v *access.Quota) {
	c.text("principal", &v.Principal)
	c.text("namespace", &v.Namespace)
	c.signed("leases", &v.Leases)
	c.signed("sessions", &v.Sessions)
	c.signed("waiters", &v.Waiters)
	c.signed("records", &v.Records)
	c.signed("bytes", &v.Bytes)
	c.signed("watches", &v.Watches)
	c.signed("requests", &v.Requests)
	c.signed("renewals", &v.Renewals)
}

// minRule is the least that a rule of an issuer takes.
const minRule = 3

func (c *codec) accessIssuer(v *access.Issuer) {
	c.text("name", &v.Name)
	c.text("url", &v.URL)
	c.names("audiences", &v.Audiences)
	c.text("keys", &v.Keys)
	c.text("principal", &v.Principal)
	list(c, "groups", &v.Groups, minRule, func(r *access.ClaimRule) {
		c.text("claim", &r.Claim)
		c.text("value", &r.Value)
		c.text("group", &r.Group)
	})
}

func (c *codec) accessCertificate(v *access.Certificate) {
	c.text("name", &v.Name)
	c.text("san", &v.SAN)
	c.text("principal", &v.Principal)
	c.names("groups", &v.Groups)
}

// accessKind is recordKind for the parts of a policy, and for owners.
func accessKind(value any) uint64 {
	switch value.(type) {
	case *core.PolicyHead:
		return kindPolicy
	case *access.Token:
		return kindToken
	case *access.Role:
		return kindRole
	case *access.Binding:
		return kindBinding
	case *access.Quota:
		return kindQuota
	case *access.Issuer:
		return kindIssuer
	case *access.Certificate:
		return kindCertificate
	case *core.ClaimOwner:
		return kindClaimOwner
	case *core.RecordOwner:
		return kindRecordOwner
	case *core.Revocation:
		return kindRevocation
	case *core.Loss:
		return kindLoss
	case *core.Withdrawal:
		return kindWithdrawal
	}
	return kindEnd
}

// newAccess is newRecord for them.
func newAccess(kind uint64) any {
	switch kind {
	case kindPolicy:
		return new(core.PolicyHead)
	case kindToken:
		return new(access.Token)
	case kindRole:
		return new(access.Role)
	case kindBinding:
		return new(access.Binding)
	case kindQuota:
		return new(access.Quota)
	case kindIssuer:
		return new(access.Issuer)
	case kindCertificate:
		return new(access.Certificate)
	case kindClaimOwner:
		return new(core.ClaimOwner)
	case kindRecordOwner:
		return new(core.RecordOwner)
	case kindRevocation:
		return new(core.Revocation)
	case kindLoss:
		return new(core.Loss)
	case kindWithdrawal:
		return new(core.Withdrawal)
	}
	return nil
}

// accessPiece is a piece of a snapshot that says who may do what.
func (c *codec) accessPiece(value any) {
	switch v := value.(type) {
	case *core.PolicyHead:
		c.unsigned("revision", &v.Revision)
		c.declaration(&v.Declared)
	case *access.Token:
		c.accessToken(v)
	case *access.Role:
		c.accessRole(v)
	case *access.Binding:
		c.accessBinding(v)
	case *access.Quota:
		c.accessQuota(v)
	case *access.Issuer:
		c.accessIssuer(v)
	case *access.Certificate:
		c.accessCertificate(v)
	case *core.ClaimOwner:
		c.text("id", &v.ID)
		c.owner(&v.Owner)
	case *core.RecordOwner:
		c.text("path", &v.Path)
		c.owner(&v.Owner)
	case *core.Revocation:
		c.unsigned("order", &v.Order)
		c.text("by", &v.By)
		c.text("namespace", &v.Space)
		c.text("id", &v.ID)
	case *core.Loss:
		c.unsigned("order", &v.Order)
		c.text("principal", &v.Principal)
		c.text("group", &v.Group)
		c.text("namespace", &v.Namespace)
		c.text("prefix", &v.Prefix)
	case *core.Withdrawal:
		c.text("by", &v.By)
		c.time("at", &v.At)
		c.text("namespace", &v.Space)
		c.text("resource", &v.Resource)
		c.number("priority", &v.Priority)
		c.unsigned("order", &v.Order)
	}
}

func (c *codec) ownerIf(owned bool, p **access.Owner) {
	if owned {
		c.owner(p)
	}
}

// owner is whose something is. What nobody owns is written with the older kind.
func (c *codec) owner(p **access.Owner) {
	if !c.writing {
		*p = new(access.Owner)
	}
	o := *p
	if c.text("principal", &o.Principal); o.Principal == "" && c.fault == nil {
		c.fail("principal", "it is missing, and then the record is of another kind")
	}
	c.text("group", &o.Group)
	if c.writing || c.owners == nil {
		return
	}
	if known, ok := c.owners[*o]; ok {
		*p = known
		return
	}
	c.owners[*o] = o
}

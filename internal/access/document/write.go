package document

import (
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// From returns a policy as a document, without secrets and hashes. The roles that are always there are left out.
func From(p *access.Policy) v1.Access {
	all := p.Items()
	return v1.Access{
		Revision: p.At(), Roles: list(all.Roles, FromRole), Bindings: list(all.Bindings, FromBinding),
		Quotas: list(all.Quotas, FromQuota), Issuers: list(all.Issuers, FromIssuer),
		Certificates: list(all.Certificates, FromCertificate), Tokens: list(all.Tokens, FromToken),
	}
}

func list[T, U any](items []*T, write func(*T) U) (all []U) {
	for _, item := range items {
		all = append(all, write(item))
	}
	return all
}

// FromRole writes a role.
func FromRole(r *access.Role) v1.AccessRole {
	out := v1.AccessRole{Name: r.Name, Ready: access.IsReady(r.Name), Verbs: []string{}}
	if r.EndOnRevoke {
		out.OnRevoke = "end"
	}
	for _, name := range access.Names() {
		verb, _ := access.VerbOf(name)
		switch {
		case r.Any.Has(verb):
			out.Verbs = append(out.Verbs, name)
		case r.Own.Has(verb):
			out.Verbs = append(out.Verbs, name+":own")
		}
	}
	return out
}

// FromBinding writes a binding.
func FromBinding(b *access.Binding) v1.AccessBinding { return v1.AccessBinding(*b) }

// FromQuota writes a quota.
func FromQuota(q *access.Quota) v1.AccessQuota {
	return v1.AccessQuota{Principal: q.Principal, Namespace: q.Namespace, Leases: q.Leases, Sessions: q.Sessions,
		Waiters: q.Waiters, Records: q.Records, Bytes: q.Bytes, Watches: q.Watches, Requests: q.Requests,
		Renewals: q.Renewals}
}

// FromIssuer writes an issuer.
func FromIssuer(i *access.Issuer) v1.AccessIssuer {
	out := v1.AccessIssuer{Name: i.Name, URL: i.URL, Audiences: i.Audiences, Keys: i.Keys, Principal: i.Principal}
	for _, r := range i.Groups {
		out.Groups = append(out.Groups, v1.ClaimRule(r))
	}
	return out
}

// FromCertificate writes a rule for certificates.
func FromCertificate(c *access.Certificate) v1.AccessCertificate { return v1.AccessCertificate(*c) }

// FromToken writes a token, without its hash.
func FromToken(t *access.Token) v1.AccessToken {
	return v1.AccessToken{ID: t.ID, Principal: t.Principal, Groups: t.Groups, Description: t.Description,
		Created: moment(t.CreatedWall), CreatedBy: t.CreatedBy, Expires: moment(t.ExpiresWall),
		Used: moment(t.UsedWall)}
}

func moment(nanoseconds int64) *v1.Time {
	if nanoseconds == 0 {
		return nil
	}
	return &v1.Time{Time: time.Unix(0, nanoseconds)}
}

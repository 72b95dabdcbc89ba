package document

import (
	"slices"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Kind is one kind of items: as the API has them, T, and as a policy does, U.
type Kind[T, U any] struct {
	Name  string
	Read  func(T) (*U, error)
	Write func(*U) T
	Key   func(T) string          // names an item within its kind
	Named func(*T) *string        // the field that has the name; nil: it is made of others
	All   func(access.Items) []*U // those that a policy has, and those that are always there
	Items func(*U) access.Items   // one item as a change
	Keys  func(*access.Keys) *[]string
}

// The kinds.
var (
	Roles = Kind[v1.AccessRole, access.Role]{"role", Role, FromRole,
		func(r v1.AccessRole) string { return r.Name }, func(r *v1.AccessRole) *string { return &r.Name },
		func(all access.Items) []*access.Role { return slices.Concat(access.Ready(), all.Roles) },
		func(r *access.Role) access.Items { return access.Items{Roles: []*access.Role{r}} },
		func(k *access.Keys) *[]string { return &k.Roles }}
	Bindings = Kind[v1.AccessBinding, access.Binding]{"binding", Binding, FromBinding,
		v1.AccessBinding.Key, func(b *v1.AccessBinding) *string { return &b.Name },
		func(all access.Items) []*access.Binding { return all.Bindings },
		func(b *access.Binding) access.Items { return access.Items{Bindings: []*access.Binding{b}} },
		func(k *access.Keys) *[]string { return &k.Bindings }}
	Quotas = Kind[v1.AccessQuota, access.Quota]{"quota", Quota, FromQuota, v1.AccessQuota.Key, nil,
		func(all access.Items) []*access.Quota { return all.Quotas },
		func(q *access.Quota) access.Items { return access.Items{Quotas: []*access.Quota{q}} },
		func(k *access.Keys) *[]string { return &k.Quotas }}
	Issuers = Kind[v1.AccessIssuer, access.Issuer]{"issuer", Issuer, FromIssuer,
		func(i v1.AccessIssuer) string { return i.Name }, func(i *v1.AccessIssuer) *string { return &i.Name },
		func(all access.Items) []*access.Issuer { return all.Issuers },
		func(i *access.Issuer) access.Items { return access.Items{Issuers: []*access.Issuer{i}} },
		func(k *access.Keys) *[]string { return &k.Issuers }}
	Certificates = Kind[v1.AccessCertificate, access.Certificate]{"certificate", Certificate, FromCertificate,
		func(c v1.AccessCertificate) string { return c.Name }, func(c *v1.AccessCertificate) *string { return &c.Name },
		func(all access.Items) []*access.Certificate { return all.Certificates },
		func(c *access.Certificate) access.Items { return access.Items{Certificates: []*access.Certificate{c}} },
		func(k *access.Keys) *[]string { return &k.Certificates }}
	Tokens = Kind[v1.AccessToken, access.Token]{"token", nil, FromToken,
		func(t v1.AccessToken) string { return t.ID }, nil,
		func(all access.Items) []*access.Token { return all.Tokens }, nil,
		func(k *access.Keys) *[]string { return &k.Tokens }}
)

// PolicyKey returns the name by which a policy has what the API names.
func (k *Kind[T, U]) PolicyKey(name string) (string, error) {
	if k.Name == Quotas.Name {
		return quotaKey(name)
	}
	return name, nil
}

package document

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Items returns what a document declares. Tokens that it names without a hash must exist, and keep their secrets.
func Items(doc v1.Access, current *access.Policy, now time.Time) (all access.Items, err error) {
	if all.Roles, err = each("role", doc.Roles, notReady, Role); err != nil {
		return all, err
	}
	if all.Bindings, err = each("binding", doc.Bindings, nil, Binding); err != nil {
		return all, err
	}
	if all.Quotas, err = each("quota", doc.Quotas, nil, Quota); err != nil {
		return all, err
	}
	if all.Issuers, err = each("issuer", doc.Issuers, nil, Issuer); err != nil {
		return all, err
	}
	if all.Certificates, err = each("certificate", doc.Certificates, nil, Certificate); err != nil {
		return all, err
	}
	all.Tokens, err = each("token", doc.Tokens, nil, func(t v1.AccessToken) (*access.Token, error) {
		return token(t, current, now)
	})
	if err != nil {
		return all, err
	}
	return all, twice(all)
}

// notReady leaves out the roles that are always there: what was exported may have them.
func notReady(r v1.AccessRole) bool { return !r.Ready }

func each[T, U any](kind string, list []T, keep func(T) bool, read func(T) (*U, error)) (all []*U, err error) {
	for i, item := range list {
		if keep != nil && !keep(item) {
			continue
		}
		read, err := read(item)
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", kind, i+1, err)
		}
		all = append(all, read)
	}
	return all, nil
}

// twice says which item is in a document twice: one of them would be ignored.
func twice(all access.Items) error {
	keys := all.Keys()
	for _, kind := range []struct {
		name string
		keys []string
	}{
		{"role", keys.Roles}, {"binding", keys.Bindings}, {"quota", keys.Quotas}, {"issuer", keys.Issuers},
		{"certificate", keys.Certificates}, {"token", keys.Tokens},
	} {
		slices.Sort(kind.keys)
		for i := 1; i < len(kind.keys); i++ {
			if kind.keys[i] == kind.keys[i-1] {
				return fmt.Errorf("%s %s is there twice: remove one", kind.name, kind.keys[i])
			}
		}
	}
	return nil
}

// Role reads a role.
func Role(r v1.AccessRole) (*access.Role, error) {
	role := &access.Role{Name: r.Name}
	for _, text := range r.Verbs {
		name, own := strings.CutSuffix(text, ":own")
		verb, ok := access.VerbOf(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("unknown verb %q; known verbs: %s; add :own for one's own only", text,
				strings.Join(access.Names(), ", "))
		case own:
			role.Own |= access.Of(verb)
		default:
			role.Any |= access.Of(verb)
		}
	}
	role.Own &^= role.Any // which says more
	switch r.OnRevoke {
	case "", "keep":
	case "end":
		role.EndOnRevoke = true
	default:
		return nil, fmt.Errorf("on_revoke is %q: write keep or end", r.OnRevoke)
	}
	return role, nil
}

// Binding reads a binding.
func Binding(b v1.AccessBinding) (*access.Binding, error) {
	return &access.Binding{Name: b.Key(), Role: b.Role, Principal: b.Principal, Group: b.Group,
		Namespace: cmp.Or(b.Namespace, leasehold.DefaultNamespace), Prefix: b.Prefix, Holders: b.Holders}, nil
}

// Quota reads a quota.
func Quota(q v1.AccessQuota) (*access.Quota, error) {
	return &access.Quota{Principal: q.Principal, Namespace: q.Namespace, Leases: q.Leases, Sessions: q.Sessions,
		Waiters: q.Waiters, Records: q.Records, Bytes: q.Bytes, Watches: q.Watches, Requests: q.Requests,
		Renewals: q.Renewals}, nil
}

// quotaKey returns the key of a quota as a policy has it, of one as the API writes it.
func quotaKey(key string) (string, error) {
	kind, name, _ := strings.Cut(key, "/")
	switch {
	case name == "":
	case kind == "principal":
		return (&access.Quota{Principal: name}).Key(), nil
	case kind == "namespace":
		return (&access.Quota{Namespace: name}).Key(), nil
	}
	return "", fmt.Errorf("%q names no quota: write principal/NAME or namespace/NAME", key)
}

// Issuer reads an issuer.
func Issuer(i v1.AccessIssuer) (*access.Issuer, error) {
	issuer := &access.Issuer{Name: i.Name, URL: i.URL, Audiences: i.Audiences, Keys: i.Keys, Principal: i.Principal}
	for _, r := range i.Groups {
		issuer.Groups = append(issuer.Groups, access.ClaimRule(r))
	}
	return issuer, nil
}

// Certificate reads a rule for certificates.
func Certificate(c v1.AccessCertificate) (*access.Certificate, error) {
	return &access.Certificate{Name: c.Name, SAN: c.SAN, Principal: c.Principal, Groups: c.Groups}, nil
}

// token reads a token that a document declares. What is not declared, such as when it was used, stays.
func token(t v1.AccessToken, current *access.Policy, now time.Time) (*access.Token, error) {
	out := &access.Token{ID: t.ID, Principal: t.Principal, Groups: t.Groups, Description: t.Description,
		CreatedWall: now.UnixNano(), CreatedBy: t.CreatedBy}
	if t.Expires != nil {
		out.ExpiresWall = t.Expires.UnixNano()
	}
	old, known := (*access.Token)(nil), false
	if current != nil {
		old, known = current.Token(t.ID)
	}
	if known {
		out.Hash, out.CreatedWall, out.CreatedBy, out.UsedWall = old.Hash, old.CreatedWall, old.CreatedBy, old.UsedWall
	}
	if t.Hash != "" {
		hash, err := Hash(t.Hash)
		if err != nil {
			return nil, err
		}
		out.Hash = hash
	}
	if out.Hash == "" {
		return nil, fmt.Errorf("token %s does not exist: create it with leasehold access token create, or give "+
			"the hash of its secret", t.ID)
	}
	return out, nil
}

// Hash reads the hash of a secret.
func Hash(text string) (string, error) {
	hash, err := hex.DecodeString(text)
	if err != nil || len(hash) != 32 {
		return "", fmt.Errorf("a hash has %d characters: write the SHA-256 of the secret as 64 hexadecimal digits",
			len(text))
	}
	return string(hash), nil
}

package credential

import (
	"slices"
	"time"
)

// Still returns until when a proof holds, by the policy as this server has applied it, or why it does not hold any
// more: zero if it never ends by itself. A request that takes long asks after each change of the policy. Nothing is
// fetched for it, and no secret is kept: where it cannot be known whether a JWT would be believed again, it has
// to be shown again.
func (l *Login) Still(p *Proof) (expires time.Time, err error) {
	k := l.policies.here()
	if k.policy == nil {
		return time.Time{}, nil
	}
	expires = p.Expires
	switch {
	case p.token != nil:
		t, ok := k.policy.Token(p.token.ID)
		if !ok || t.Hash != p.token.Hash || t.Principal != p.token.Principal {
			return expires, refuse(Unknown, "the token was revoked in the meantime: ask an admin for another one")
		}
		if lacks(t.Groups, p.Asker.Groups) {
			return expires, refuse(Unknown, "the token is in other groups than before: ask again")
		}
		if expires = (time.Time{}); t.ExpiresWall != 0 {
			expires = time.Unix(0, t.ExpiresWall)
		}
	case p.issuer != nil:
		if i, ok := k.policy.Issuer(p.issuer.Name); !ok || !i.Equal(p.issuer) {
			return expires, refuse(Issuer, "issuer "+p.issuer.Name+" was removed or changed in the meantime: log in "+
				"again")
		}
	case p.certificate != nil:
		now, err := l.judgeCertificate(p.certificate, k)
		if err != nil {
			return expires, err
		}
		if a := now.proof.Asker; a.Principal != p.Asker.Principal || lacks(a.Groups, k.named(p.Asker.Groups)) {
			return expires, refuse(Unmapped, "the rules for the client certificate were changed in the meantime: ask "+
				"again")
		}
	}
	if !expires.IsZero() && !l.config.Now().Before(expires) {
		return expires, refuse(Expired, "the credential expired in the meantime: get another one, and ask again with "+
			"the same id")
	}
	return expires, nil
}

// lacks reports whether a list lacks one of some names.
func lacks(list, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

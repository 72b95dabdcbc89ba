package access

import (
	"fmt"

	"github.com/leasehold/leasehold"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

func denied(format string, args ...any) *leasehold.Error {
	return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(format, args...)}
}

func whoAreYou() *leasehold.Error {
	return denied("who are you? run leasehold login, or set LEASEHOLD_TOKEN")
}

func revoked(a *policy.Asker) *leasehold.Error {
	if a.Token == "" {
		return denied("%s", a.Unproven())
	}
	return denied("token %s of %s was revoked: get another one, and run leasehold login", a.Token, a.Principal)
}

// deny refuses what the asker may not do at a path, or, if that is empty, anywhere in a namespace.
func deny(p *policy.Permit, v policy.Verb, namespace, path string) *leasehold.Error {
	return denied("%s", p.Denial(v, namespace, path))
}

// denyCluster refuses what belongs to no namespace.
func denyCluster(p *policy.Permit, v policy.Verb) *leasehold.Error {
	return denied("%s may not do this: it needs %v for the whole cluster; ask an admin", p.Asker.Principal, v)
}

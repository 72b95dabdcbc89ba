package document

import (
	"slices"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Question is what may be done or not.
type Question struct {
	Verb            access.Verb
	Namespace, Path string

	ID    string        // of the lease or waiter that it is done to; empty: to any
	Owner *access.Owner // of that
}

// CanI says whether somebody may do something, and why. A nil policy is that of a cluster with access off.
func CanI(p *access.Policy, asker *access.Asker, q Question) v1.CanI {
	out := v1.CanI{Enabled: p != nil, Allowed: p == nil, Verb: q.Verb.String(), Namespace: q.Namespace,
		Path: q.Path, ID: q.ID, Principal: asker.Principal, Groups: asker.Groups, Because: []v1.AccessReason{}}
	if asker.Token != "" && p.Compile(asker).Revoked() {
		return out
	}
	if why := p.Why(asker, q.Verb, q.Namespace, q.Path); len(why) > 0 {
		out.Because = fromReasons(why)
		out.Own = !slices.ContainsFunc(why, func(r access.Reason) bool { return !r.Own })
		out.Allowed = !out.Own || q.ID == "" || p.Compile(asker).Owns(q.Owner)
	}
	return out
}

// WhoCan says who may do something, and why.
func WhoCan(p *access.Policy, q Question) v1.WhoCan {
	return v1.WhoCan{Enabled: p != nil, Verb: q.Verb.String(), Namespace: q.Namespace, Path: q.Path,
		Because: fromReasons(p.WhoCan(q.Verb, q.Namespace, q.Path))}
}

func fromReasons(why []access.Reason) []v1.AccessReason {
	out := []v1.AccessReason{}
	for _, r := range why {
		b := r.Binding
		out = append(out, v1.AccessReason{Binding: b.Name, Role: b.Role, Principal: b.Principal, Group: b.Group,
			Namespace: b.Namespace, Prefix: b.Prefix, Holders: b.Holders, Own: r.Own})
	}
	return out
}

// As returns somebody that a question is about. Without groups, it has those of its tokens.
func As(p *access.Policy, principal string, groups []string) *access.Asker {
	if p != nil && len(groups) == 0 {
		for _, t := range p.Items().Tokens {
			if t.Principal == principal {
				groups = append(groups, t.Groups...)
			}
		}
		slices.Sort(groups)
		groups = slices.Compact(groups)
	}
	return &access.Asker{Principal: principal, Groups: groups}
}

// Whoami says who was proven to ask, and what it may do. asker is nil if nobody was.
func Whoami(p *access.Policy, asker *access.Asker) v1.Whoami {
	out := v1.Whoami{Enabled: p != nil, Bindings: []v1.AccessBinding{}}
	if asker == nil || p == nil {
		return out
	}
	out.Principal, out.Groups, out.Token = asker.Principal, asker.Groups, asker.Token
	if t, ok := p.Token(asker.Token); ok {
		out.Expires = FromToken(t).Expires
	}
	for _, b := range p.Items().Bindings {
		if b.Group == "" && b.Principal == asker.Principal || b.Group != "" && slices.Contains(asker.Groups, b.Group) {
			out.Bindings = append(out.Bindings, FromBinding(b))
		}
	}
	return out
}

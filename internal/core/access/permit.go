package access

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leasehold/leasehold"
)

// An Asker is who was proven to ask. It is never changed.
type Asker struct {
	Principal string
	Groups    []string // those that some binding names
	Token     string   // the id of the token that proved it; empty: something else did

	permit atomic.Pointer[Permit] // that Policy.Permit made last
}

// System is who asks when a server asks by itself. It may do everything, and no credential proves it.
var System = Asker{Principal: "leasehold"}

// An Owner is whose something is, and the group through whose binding it was acquired.
type Owner = leasehold.Owner

// A Permit is what one asker may do by one policy. It is never changed. A nil Permit allows everything: it
// is that of a cluster without a policy.
type Permit struct {
	Asker  *Asker
	Policy *Policy // by which it was made, or one that has the same rules

	revoked bool
	groups  []string  // of the asker, by the policy where that knows them
	self    *Owner    // of what it takes by no group
	owners  []*Owner  // of what it takes by its groups
	grants  []*grants // by itself first, then by its groups in their order
	longest int       // the most bytes that a prefix has
}

// Permit is Compile, which an asker remembers: to ask again for the same asker and policy costs nothing.
func (p *Policy) Permit(a *Asker) *Permit {
	if a == nil || p == nil {
		return p.Compile(a)
	}
	if known := a.permit.Load(); known != nil && known.Policy.SameRules(p) {
		return known
	}
	made := p.Compile(a)
	if made != nil {
		a.permit.Store(made)
	}
	return made
}

// Compile gathers what an asker may do. Who was proven by what is no longer in the policy may do nothing: the server
// that sent the asker may know an older one. For the same reason a token has the groups that the policy says, and other
// credentials have none that it has no rule for.
func (p *Policy) Compile(a *Asker) *Permit {
	if p == nil || a == &System {
		return nil
	}
	out := &Permit{Asker: a, Policy: p}
	if a == nil {
		out.Asker, out.self = &Asker{}, &Owner{}
		return out
	}
	out.self = &Owner{Principal: a.Principal}
	if out.groups, out.revoked = p.believe(a); out.revoked {
		return out
	}
	out.grants = p.grantsOf(a.Principal, out.groups)
	takes := false
	for _, g := range out.grants {
		out.longest = max(out.longest, g.longest)
		takes = takes || g.takes
	}
	if takes {
		for _, group := range out.groups {
			if g := p.granted(subject(groupSubject, group)); g != nil && g.takes {
				out.owners = append(out.owners, &Owner{Principal: a.Principal, Group: group})
			}
		}
	}
	return out
}

// believe returns the groups of an asker, or says that what proved it is gone.
func (p *Policy) believe(a *Asker) (groups []string, revoked bool) {
	if groups = a.Groups; a.Token == "" {
		proven, _ := p.provesOther(a.Principal)
		groups, revoked = p.provenIn(a.Principal, groups), !proven
	} else if t, ok := p.tokens.Get(a.Token); ok && t.Principal == a.Principal {
		groups = t.Groups
	} else {
		revoked = true
	}
	unnamed := func(group string) bool { return !p.NamesGroup(group) }
	if slices.ContainsFunc(groups, unnamed) { // rarely: doors send those alone that have bindings
		groups = slices.DeleteFunc(slices.Clone(groups), unnamed)
	}
	return groups, revoked
}

// each calls add with every binding of an asker.
func (p *Policy) each(a *Asker, add func(*Binding, *Role)) {
	give := func(b *Binding) bool {
		if role, ok := p.Role(b.Role); ok {
			add(b, role)
		}
		return true
	}
	p.ofSubject(subject(principalSubject, a.Principal), give)
	for _, g := range a.Groups {
		p.ofSubject(subject(groupSubject, g), give)
	}
}

// somewhere returns what is allowed somewhere in a namespace because of bindings to it alone.
func (p *Permit) somewhere(namespace string) (verbs Verbs) {
	for _, g := range p.grants {
		verbs |= g.in(namespace).verbs
	}
	return verbs
}

// ownerBy returns the owner of what is taken through a group; empty: through none.
func (p *Permit) ownerBy(group string) *Owner {
	for _, o := range p.owners {
		if o.Group == group {
			return o
		}
	}
	return p.self
}

// Revoked reports whether what proved the asker is no longer in the policy.
func (p *Permit) Revoked() bool { return p != nil && p.revoked }

// Owns reports whether something is the asker's own.
func (p *Permit) Owns(o *Owner) bool {
	if p == nil || o == nil {
		return p == nil
	}
	return o.Principal == p.Asker.Principal || o.Group != "" && slices.Contains(p.groups, o.Group)
}

// May reports whether the asker may do something to an item at a path, which has an owner or none.
func (p *Permit) May(v Verb, namespace, path string, owner *Owner) bool {
	return p.may(v, namespace, path, func(r *right) bool { return r.any.Has(v) || r.own.Has(v) && p.Owns(owner) })
}

// MayHold reports whether the asker may acquire, share or change something in the name of a holder. change is of a
// lease that has an owner.
func (p *Permit) MayHold(v Verb, namespace, path, holder string, owner *Owner) bool {
	return p.may(v, namespace, path, func(r *right) bool {
		if r.any.Has(v) || r.own.Has(v) && p.Owns(owner) {
			return true
		}
		return slices.ContainsFunc(r.under, func(u under) bool {
			return (u.any.Has(v) || u.own.Has(v) && p.Owns(owner)) && Covers(u.holders, holder)
		})
	})
}

// HoldersFor returns under which names the asker may acquire, share or change something; none if it may not under any.
func (p *Permit) HoldersFor(v Verb, namespace, path string) (names []string) {
	if p == nil {
		return nil
	}
	p.covering(v, namespace, path, func(r *right) bool {
		for _, u := range r.under {
			if (u.any | u.own).Has(v) && !slices.Contains(names, u.holders) {
				names = append(names, u.holders)
			}
		}
		return true
	})
	return names
}

// Self returns the owner of what the asker takes by no group; nil: everything is allowed.
func (p *Permit) Self() *Owner {
	if p == nil {
		return nil
	}
	return p.self
}

// may reports whether some right that covers a path will do.
func (p *Permit) may(v Verb, namespace, path string, ok func(*right) bool) bool {
	if p == nil {
		return true
	}
	for _, name := range [2]string{namespace, AllNamespaces} {
		for _, g := range p.grants {
			if s := g.in(name); s.verbs.Has(v) && g.covers(s, path, ok) {
				return true
			}
		}
	}
	return false
}

// covers reports whether some right of a namespace that covers a path will do.
func (g *grants) covers(s *space, path string, ok func(*right) bool) (found bool) {
	prefixes(path, g.longest, func(prefix string) bool {
		r := s.at(prefix)
		found = r != nil && ok(r)
		return !found
	})
	return found
}

// covering calls yield with each right that covers a path, from the shortest prefix on, until it returns false. Those
// at the same prefix come in the order of the grants.
func (p *Permit) covering(v Verb, namespace, path string, yield func(*right) bool) {
	more := true
	for _, name := range [2]string{namespace, AllNamespaces} {
		if !more || !p.somewhere(name).Has(v) {
			continue
		}
		prefixes(path, p.longest, func(prefix string) bool {
			for i := 0; more && i < len(p.grants); i++ {
				if r := p.grants[i].in(name).at(prefix); r != nil {
					more = yield(r)
				}
			}
			return more
		})
	}
}

// MaySpan reports whether the asker may do something to all paths from one on and below another; "": to the end.
func (p *Permit) MaySpan(v Verb, namespace, from, to string) bool {
	return p.may(v, namespace, from, func(r *right) bool { return r.any.Has(v) && spans(r.prefix, from, to) })
}

// spans reports whether all paths from one on and below another are covered by a prefix, which is empty or ends
// with a slash if it covers more than one.
func spans(prefix, from, to string) bool {
	if prefix == "" {
		return true
	}
	if !strings.HasSuffix(prefix, "/") || !strings.HasPrefix(from, prefix) || to == "" {
		return false
	}
	return to <= prefix[:len(prefix)-1]+"0" // the byte after the slash
}

// MayAll reports whether the asker may do something to everything in a namespace, its own or not.
func (p *Permit) MayAll(v Verb, namespace string) bool {
	if p == nil {
		return true
	}
	for _, g := range p.grants {
		for _, name := range [2]string{namespace, AllNamespaces} {
			if r := g.in(name).at(""); r != nil && r.any.Has(v) {
				return true
			}
		}
	}
	return false
}

// MaySomewhere reports whether the asker may do something to something in a namespace.
func (p *Permit) MaySomewhere(v Verb, namespace string) bool {
	return p == nil || (p.somewhere(namespace) | p.somewhere(AllNamespaces)).Has(v)
}

// MayAnywhere reports whether the asker may do something to something, in whatever namespace.
func (p *Permit) MayAnywhere(v Verb) bool {
	return p == nil || slices.ContainsFunc(p.grants, func(g *grants) bool {
		return slices.ContainsFunc(g.spaces, func(s space) bool { return s.verbs.Has(v) })
	})
}

// MayToOwn reports whether the asker may do something to what has an owner and no path, such as a session: to its own
// if it may somewhere in the namespace, and to others' if it may to everything there.
func (p *Permit) MayToOwn(v Verb, namespace string, owner *Owner) bool {
	return p.MayAll(v, namespace) || p.Owns(owner) && p.MaySomewhere(v, namespace)
}

// MayCluster reports whether the asker may do something that belongs to no namespace.
func (p *Permit) MayCluster(v Verb) bool { return p.MayAll(v, AllNamespaces) }

// Knows reports whether the asker may do anything in a namespace. One that it does not know does not exist for it.
func (p *Permit) Knows(namespace string) bool {
	return p == nil || p.somewhere(namespace)|p.somewhere(AllNamespaces) != 0
}

// OwnerOf returns the owner of what the asker takes at a path by a verb, in the name of a holder if the verb has one:
// it is that of the first binding by which it may. What another binding allows must not make it a group's.
func (p *Permit) OwnerOf(v Verb, namespace, path, holder string) *Owner {
	if p == nil {
		return nil
	}
	o := p.self
	if len(p.owners) == 0 {
		return o
	}
	p.covering(v, namespace, path, func(r *right) bool {
		for i := range r.takers {
			if t := &r.takers[i]; t.allows(v, holder) {
				o = p.ownerBy(t.group)
				return false
			}
		}
		return true
	})
	return o
}

// Covers reports whether a prefix covers a path: "a" covers a and all below it, "a/" what is below, "" everything.
func Covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (prefix == "" || rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}

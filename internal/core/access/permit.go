package access

import (
	"cmp"
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
	self    *Owner   // of what it takes by no group
	last    *Owner   // that ownerBy returned
	rights  []*right // by namespace and prefix
	spaces  []space  // by name
	longest int      // the most bytes that a prefix has
}

// A space is what is allowed somewhere in a namespace, to anybody's or one's own.
type space struct {
	name  string
	verbs Verbs
}

type where struct{ namespace, prefix string }

// A right is what is allowed below one prefix.
type right struct {
	where
	any, own Verbs
	under    []under // what is allowed to holders of some names only
	takers   []taker // by what something can be taken, in the order of the bindings
}

// A taker is a binding that allows to take something, and whose that is then.
type taker struct {
	verbs   Verbs
	holders string
	owner   *Owner
}

// allows reports whether something can be taken by the binding in the name of a holder.
func (t *taker) allows(v Verb, holder string) bool {
	return t.verbs.Has(v) && (!Verbs(holding).Has(v) || Covers(t.holders, holder))
}

type under struct {
	any, own Verbs
	holders  string
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

// Compile gathers what an asker may do. A token that is no longer in the policy may do nothing.
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
	if a.Token != "" {
		if _, live := p.tokens.Get(a.Token); !live {
			out.revoked = true
			return out
		}
	}
	p.each(a, out.add)
	return out
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

func (p *Permit) add(b *Binding, role *Role) {
	p.addBelow(b.Prefix, b, role)
	for _, place := range besides(b.Prefix) {
		if (role.Any|role.Own)&place.verbs != 0 {
			p.addBelow(place.prefix, b, &Role{Any: role.Any & place.verbs, Own: role.Own & place.verbs})
		}
	}
	i, known := p.findSpace(b.Namespace)
	if !known {
		p.spaces = slices.Insert(p.spaces, i, space{name: b.Namespace})
	}
	p.spaces[i].verbs |= role.Any | role.Own
}

// addBelow adds what a role allows at what a prefix covers.
func (p *Permit) addBelow(prefix string, b *Binding, role *Role) {
	p.addAt(prefix, b, role)
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		p.addAt(prefix+"/", b, role)
	}
}

// addAt adds what a role allows below a prefix that ends with a slash, or at that very path.
func (p *Permit) addAt(prefix string, b *Binding, role *Role) {
	at := where{b.Namespace, prefix}
	i, known := p.find(at)
	if !known {
		p.rights = slices.Insert(p.rights, i, &right{where: at})
	}
	p.rights[i].add(b, role, p.ownerBy(b.Group))
	p.longest = max(p.longest, len(prefix))
}

func (p *Permit) find(at where) (int, bool) {
	return slices.BinarySearchFunc(p.rights, at, func(r *right, at where) int {
		return cmp.Or(strings.Compare(r.namespace, at.namespace), strings.Compare(r.prefix, at.prefix))
	})
}

func (p *Permit) findSpace(name string) (int, bool) {
	return slices.BinarySearchFunc(p.spaces, name, func(s space, name string) int {
		return strings.Compare(s.name, name)
	})
}

// right returns what is allowed below a prefix because of bindings to that very prefix; nil: nothing.
func (p *Permit) right(namespace, prefix string) *right {
	if i, ok := p.find(where{namespace, prefix}); ok {
		return p.rights[i]
	}
	return nil
}

// somewhere returns what is allowed somewhere in a namespace because of bindings to it alone.
func (p *Permit) somewhere(namespace string) Verbs {
	if i, ok := p.findSpace(namespace); ok {
		return p.spaces[i].verbs
	}
	return 0
}

// ownerBy returns the owner of what is taken through a group; empty: through none. Bindings come group by group.
func (p *Permit) ownerBy(group string) *Owner {
	if group == "" {
		return p.self
	}
	if p.last == nil || p.last.Group != group {
		p.last = &Owner{Principal: p.Asker.Principal, Group: group}
	}
	return p.last
}

func (r *right) add(b *Binding, role *Role, owner *Owner) {
	if verbs := role.Any & taken; verbs != 0 {
		r.takers = append(r.takers, taker{verbs, b.Holders, owner})
	}
	free, own := role.Any, role.Own
	if b.Holders != "" {
		r.under = append(r.under, under{free & holding, own & holding, b.Holders})
		free, own = free&^holding, own&^holding
	}
	r.any |= free
	r.own |= own
}

// Revoked reports whether the asker's token is no longer valid.
func (p *Permit) Revoked() bool { return p != nil && p.revoked }

// Owns reports whether something is the asker's own.
func (p *Permit) Owns(o *Owner) bool {
	if p == nil || o == nil {
		return p == nil
	}
	return o.Principal == p.Asker.Principal || o.Group != "" && slices.Contains(p.Asker.Groups, o.Group)
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
	p.may(v, namespace, path, func(r *right) bool {
		for _, u := range r.under {
			if (u.any | u.own).Has(v) && !slices.Contains(names, u.holders) {
				names = append(names, u.holders)
			}
		}
		return false
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
	for _, space := range [2]string{namespace, AllNamespaces} {
		if !p.somewhere(space).Has(v) {
			continue
		}
		found := false
		p.covering(space, path, func(r *right) bool {
			found = ok(r)
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// covering calls yield with each right that covers a path, from the shortest prefix on, until it returns false.
func (p *Permit) covering(namespace, path string, yield func(*right) bool) {
	if r := p.right(namespace, ""); r != nil && !yield(r) {
		return
	}
	for i := range min(len(path), p.longest) {
		if path[i] != '/' && i != len(path)-1 {
			continue
		}
		if r := p.right(namespace, path[:i+1]); r != nil && !yield(r) {
			return
		}
	}
}

// MaySpan reports whether the asker may do something to all paths from one on and below another; "": to the end.
func (p *Permit) MaySpan(v Verb, namespace, from, to string) bool {
	if p == nil {
		return true
	}
	for _, r := range p.rights {
		if (r.namespace == namespace || r.namespace == AllNamespaces) && r.any.Has(v) && spans(r.prefix, from, to) {
			return true
		}
	}
	return false
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
	for _, space := range [2]string{namespace, AllNamespaces} {
		if r := p.right(space, ""); r != nil && r.any.Has(v) {
			return true
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
	return p == nil || slices.ContainsFunc(p.spaces, func(s space) bool { return s.verbs.Has(v) })
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
	found := false
	for _, space := range [2]string{namespace, AllNamespaces} {
		if found || !p.somewhere(space).Has(v) {
			continue
		}
		p.covering(space, path, func(r *right) bool {
			for i := range r.takers {
				if t := &r.takers[i]; t.allows(v, holder) {
					found, o = true, t.owner
					break
				}
			}
			return !found
		})
	}
	return o
}

// Covers reports whether a prefix covers a path: "a" covers a and all below it, "a/" what is below, "" everything.
func Covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (prefix == "" || rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}

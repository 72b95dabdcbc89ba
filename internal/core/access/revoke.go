package access

import (
	"cmp"
	"slices"
	"strings"
)

// A Loss is what a change took away from somebody who had it by a role that ends leases: the right to renew what is
// its own, in a part of what there is. Whether it may still renew something there by another role is not said.
//
// It is that of a principal or of a group; with both it is of those in the group who cannot be proven any more: a
// principal, or all whose names begin with something that ends with a colon.
type Loss struct {
	Principal string
	Group     string
	Namespace string
	Prefix    string
}

// Losses are sorted.
type Losses []Loss

// MaxLosses is the most that one change may take away.
const MaxLosses = MaxBindings

// ends reports whether those who lose a role lose their leases.
func (r *Role) ends() bool { return r.EndOnRevoke && r.renews() }

func (r *Role) renews() bool { return (r.Any | r.Own).Has(Renew) }

// Losses returns what the step to another policy takes away. tokens are the ids of those that are not in it any more,
// or are others. There may be one more than MaxLosses, and then they are not all.
func (p *Policy) Losses(next *Policy, tokens []string) (list Losses) {
	if !p.endsLeases() {
		return nil
	}
	lose := func(principal, group string, b *Binding) bool {
		if role, ok := p.Role(b.Role); ok && role.ends() {
			list = append(list, Loss{principal, group, b.Namespace, b.Prefix})
		}
		return len(list) <= MaxLosses
	}
	gone := p.unproven(next)
	p.bindings.Scan(func(_ string, b *Binding) bool {
		if !next.stillGives(b) || b.Group == "" && holds(gone, b.Principal) {
			return lose(b.Principal, b.Group, b)
		}
		for i := 0; b.Group != "" && i < len(gone) && lose(gone[i], b.Group, b); i++ {
		}
		return len(list) <= MaxLosses
	})
	for _, id := range tokens {
		t, ok := p.tokens.Get(id)
		if !ok {
			continue
		}
		if still, _ := next.proves(t.Principal); !still {
			p.each(&Asker{Principal: t.Principal, Groups: t.Groups}, func(b *Binding, _ *Role) {
				if len(list) <= MaxLosses {
					lose(t.Principal, "", b)
				}
			})
		}
	}
	slices.SortFunc(list, Loss.compare)
	return slices.Compact(list)
}

func (p *Policy) endsLeases() (found bool) {
	if p == nil {
		return false
	}
	p.roles.Scan(func(_ string, r *Role) bool {
		found = r.ends()
		return !found
	})
	return found
}

// stillGives reports whether a policy has a binding of the same name to the same, with which they may renew.
func (p *Policy) stillGives(b *Binding) bool {
	now, ok := p.bindings.Get(b.Name)
	if !ok || now.key() != b.key() || now.Namespace != b.Namespace || now.Prefix != b.Prefix {
		return false
	}
	role, ok := p.Role(now.Role)
	return ok && role.renews()
}

// holds reports whether a principal is among those that cannot be proven any more, or may be.
func holds(gone []string, principal string) bool {
	_, itself := slices.BinarySearch(gone, principal)
	_, all := slices.BinarySearch(gone, origin(principal))
	return itself || all
}

func (l Loss) compare(o Loss) int {
	return cmp.Or(strings.Compare(l.Principal, o.Principal), strings.Compare(l.Group, o.Group),
		strings.Compare(l.Namespace, o.Namespace), strings.Compare(l.Prefix, o.Prefix))
}

// Sorted reports whether losses are in order, each once.
func (list Losses) Sorted() bool {
	for i := range list[min(1, len(list)):] {
		if list[i].compare(list[i+1]) >= 0 {
			return false
		}
	}
	return true
}

// Meet reports whether the owner of something at a path lost the right to renew it. looked is how much was looked at.
func (list Losses) Meet(o *Owner, namespace, path string) (met bool, looked int) {
	for i, first := range [4]Loss{{Principal: o.Principal}, {Group: o.Group}, {Principal: o.Principal, Group: o.Group},
		{Principal: origin(o.Principal), Group: o.Group}} {
		if i > 0 && o.Group == "" {
			break
		}
		i, _ := slices.BinarySearchFunc(list, first, Loss.compare)
		for ; i < len(list) && list[i].Principal == first.Principal && list[i].Group == first.Group; i++ {
			looked++
			if l := &list[i]; (l.Namespace == AllNamespaces || l.Namespace == namespace) && Covers(l.Prefix, path) {
				return true, looked
			}
		}
	}
	return false, looked
}

// MayTake reports whether the owner of something at a path could take it now in the name of a holder: the principal can
// be proven, and a role lets it, or the group by which it has it. looked is how much was looked at.
func (p *Policy) MayTake(o *Owner, v Verb, namespace, path, holder string) (may bool, looked int) {
	if p == nil {
		return true, 0
	}
	proven, looked := p.proves(o.Principal)
	if !proven {
		return false, looked
	}
	a := Asker{Principal: o.Principal}
	if o.Group != "" {
		a.Groups = []string{o.Group}
	}
	permit := Permit{Asker: &a, grants: p.grantsOf(a.Principal, a.Groups)}
	return permit.MayHold(v, namespace, path, holder, nil), looked
}

// MayKeep reports whether the owner of something at a path may still renew it: the principal can be proven, and a role
// lets it, or the group by which it has it. looked is how much was looked at.
func (p *Policy) MayKeep(o *Owner, namespace, path string) (may bool, looked int) {
	if p == nil {
		return true, 0
	}
	proven, looked := p.proves(o.Principal)
	if !proven {
		return false, looked
	}
	a := Asker{Principal: o.Principal}
	if o.Group != "" {
		a.Groups = []string{o.Group}
	}
	p.each(&a, func(b *Binding, role *Role) {
		looked++
		if !may {
			_, may = allows(b, role, Renew, namespace, path)
		}
	})
	return may, looked
}

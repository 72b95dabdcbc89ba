package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/btree"
)

// A Loss is what a change took away from somebody who had it by a role that ends leases: the right to renew what is
// its own, in a part of what there is. Whether it may still renew something there by another role is not said.
//
// It is that of a principal or of a group; with both it is of those in the group who cannot be proven any more, or not
// to be in it: a principal, or all whose names begin with something that ends with a colon.
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
func (p *Policy) Losses(next *Policy, tokens []string) Losses {
	if !p.endsLeases() {
		return nil
	}
	l := losing{from: p, to: next}
	l.bindings()
	l.issuers()
	l.certificates()
	for _, id := range tokens {
		if t, ok := p.tokens.Get(id); ok {
			l.token(t)
		}
	}
	slices.SortFunc(l.list, Loss.compare)
	return slices.Compact(l.list)
}

// losing gathers what a step from one policy to another takes away.
type losing struct {
	from, to *Policy
	list     Losses
	ending   btree.Map[string, []*Binding] // of subjects that were asked for
}

// full reports whether more is lost than may be.
func (l *losing) full() bool { return len(l.list) > MaxLosses }

// lose notes that somebody lost what some bindings gave it.
func (l *losing) lose(principal, group string, bindings ...*Binding) {
	for _, b := range bindings {
		if l.full() {
			return
		}
		l.list = append(l.list, Loss{principal, group, b.Namespace, b.Prefix})
	}
}

// ends reports whether those who lose a binding lose their leases.
func (l *losing) ends(b *Binding) bool {
	role, ok := l.from.Role(b.Role)
	return ok && role.ends()
}

// endingOf returns the bindings of a subject that end leases. It finds them once, however many have the subject.
func (l *losing) endingOf(subject string) []*Binding {
	list, known := l.ending.Get(subject)
	if known {
		return list
	}
	l.from.ofSubject(subject, func(b *Binding) bool {
		if l.ends(b) {
			list = append(list, b)
		}
		return true
	})
	l.ending.Set(subject, list)
	return list
}

// bindings notes what is lost with bindings and roles, and with those who cannot be proven any more.
func (l *losing) bindings() {
	gone := l.from.unproven(l.to)
	l.from.bindings.Scan(func(_ string, b *Binding) bool {
		switch {
		case !l.ends(b):
		case !l.to.stillGives(b) || b.Group == "" && holds(gone, b.Principal):
			l.lose(b.Principal, b.Group, b)
		case b.Group != "":
			for _, who := range gone {
				l.lose(who, b.Group, b)
			}
		}
		return !l.full()
	})
}

// issuers notes what is lost with the groups that an issuer has no rule for any more.
func (l *losing) issuers() {
	l.from.issuers.Scan(func(name string, i *Issuer) bool {
		if now, ok := l.to.issuers.Get(name); ok && now != i {
			for _, r := range i.Groups {
				l.leaves(name+":", r.Group, func() bool {
					return slices.ContainsFunc(now.Groups, func(n ClaimRule) bool { return n.Group == r.Group })
				})
			}
		}
		return !l.full()
	})
}

// certificates notes what is lost with the groups of certificate rules. Of those who are named by their certificates it
// is not known who is meant: that is found out when ticks come to what they have.
func (l *losing) certificates() {
	l.from.certificates.Scan(func(name string, c *Certificate) bool {
		now, ok := l.to.certificates.Get(name)
		if ok && now == c {
			return true
		}
		for _, group := range c.Groups {
			if c.Principal != "" {
				l.leavesFor(c.Principal, group)
				continue
			}
			l.leaves(CertificateIssuer+":", group, func() bool {
				return ok && now.SAN == c.SAN && now.Principal == "" && slices.Contains(now.Groups, group)
			})
		}
		return !l.full()
	})
}

// token notes what is lost with a token, or with those of its groups that it is not in any more.
func (l *losing) token(t *Token) {
	if still, _ := l.to.proves(t.Principal); !still {
		l.lose(t.Principal, "", l.endingOf(subject(principalSubject, t.Principal))...)
		for _, group := range t.Groups {
			l.lose(t.Principal, "", l.endingOf(subject(groupSubject, group))...)
		}
		return
	}
	for _, group := range t.Groups {
		l.leavesFor(t.Principal, group)
	}
}

// leavesFor is leaves for a principal.
func (l *losing) leavesFor(principal, group string) {
	l.leaves(principal, group, func() bool {
		still, _ := l.to.provesIn(principal, group)
		return still
	})
}

// leaves notes what is lost with a group, unless its members still are in it: a principal, or all whose names begin
// with something that ends with a colon.
func (l *losing) leaves(who, group string, still func() bool) {
	if list := l.endingOf(subject(groupSubject, group)); len(list) > 0 && !l.full() && !still() {
		l.lose(who, group, list...)
	}
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
// be proven, and a role lets it, or the group by which it has it and in which it still may be. looked is how much was
// looked at.
func (p *Policy) MayTake(o *Owner, v Verb, namespace, path, holder string) (may bool, looked int) {
	a, proven, looked := p.stillAsks(o)
	if !proven {
		return p == nil, looked
	}
	permit := Permit{Asker: a, grants: p.grantsOf(a.Principal, a.Groups)}
	return permit.MayHold(v, namespace, path, holder, nil), looked
}

// MayKeep reports whether the owner of something at a path may still renew it, as MayTake does.
func (p *Policy) MayKeep(o *Owner, namespace, path string) (may bool, looked int) {
	a, proven, looked := p.stillAsks(o)
	if !proven {
		return p == nil, looked
	}
	p.each(a, func(b *Binding, role *Role) {
		looked++
		if !may {
			_, may = allows(b, role, Renew, namespace, path)
		}
	})
	return may, looked
}

// stillAsks returns the owner of something as one who asks, with the group by which it has it if it may still be in
// that. It reports whether there may be a credential for it; where there is no policy nobody has one.
func (p *Policy) stillAsks(o *Owner) (a *Asker, proven bool, looked int) {
	if p == nil {
		return nil, false, 0
	}
	if proven, looked = p.proves(o.Principal); !proven {
		return nil, false, looked
	}
	a = &Asker{Principal: o.Principal}
	if o.Group != "" {
		in, more := p.provesIn(o.Principal, o.Group)
		if looked += more; in {
			a.Groups = []string{o.Group}
		}
	}
	return a, true, looked
}

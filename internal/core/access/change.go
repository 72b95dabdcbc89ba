package access

import (
	"slices"
	"strings"
)

// Keys returns the names of items.
func (all *Items) Keys() Keys {
	return Keys{
		namesOf(all.Tokens, func(t *Token) string { return t.ID }),
		namesOf(all.Roles, func(r *Role) string { return r.Name }),
		namesOf(all.Bindings, func(b *Binding) string { return b.Name }),
		namesOf(all.Quotas, (*Quota).Key),
		namesOf(all.Issuers, func(i *Issuer) string { return i.Name }),
		namesOf(all.Certificates, func(c *Certificate) string { return c.Name }),
	}
}

// Len returns how many items there are.
func (all *Items) Len() int {
	return len(all.Tokens) + len(all.Roles) + len(all.Bindings) + len(all.Quotas) + len(all.Issuers) +
		len(all.Certificates)
}

// Len returns how many names there are.
func (k *Keys) Len() int {
	return len(k.Tokens) + len(k.Roles) + len(k.Bindings) + len(k.Quotas) + len(k.Issuers) + len(k.Certificates)
}

func namesOf[T any](list []*T, name func(*T) string) (names []string) {
	for _, item := range list {
		names = append(names, name(item))
	}
	return names
}

// Without returns the names of everything but tokens that a policy has and a set of items does not: what is removed
// when those items are declared to be all that there is.
func (p *Policy) Without(put Items) Keys {
	if p == nil {
		return Keys{}
	}
	have, keep := p.Items(), put.Keys()
	gone := have.Keys()
	gone.Tokens = nil
	for _, list := range []struct{ from, kept *[]string }{
		{&gone.Roles, &keep.Roles}, {&gone.Bindings, &keep.Bindings}, {&gone.Quotas, &keep.Quotas},
		{&gone.Issuers, &keep.Issuers}, {&gone.Certificates, &keep.Certificates},
	} {
		slices.Sort(*list.kept)
		*list.from = slices.DeleteFunc(*list.from, func(name string) bool {
			_, found := slices.BinarySearch(*list.kept, name)
			return found
		})
	}
	return gone
}

// Changes reports whether a change would make another policy of this one.
func (p *Policy) Changes(remove Keys, put Items) bool {
	if p == nil {
		return true
	}
	return has(&p.tokens, remove.Tokens) || has(&p.roles, remove.Roles) || has(&p.bindings, remove.Bindings) ||
		has(&p.quotas, remove.Quotas) || has(&p.issuers, remove.Issuers) || has(&p.certificates, remove.Certificates) ||
		differs(put.Tokens, func(t *Token) bool {
			old, ok := p.tokens.Get(t.ID)
			return ok && old.equal(t)
		}) ||
		differs(put.Roles, func(r *Role) bool {
			old, ok := p.roles.Get(r.Name)
			return ok && *old == *r
		}) ||
		differs(put.Bindings, func(b *Binding) bool {
			old, ok := p.bindings.Get(b.Name)
			return ok && *old == *b
		}) ||
		differs(put.Quotas, func(q *Quota) bool {
			old, ok := p.quotas.Get(q.Key())
			return ok && *old == *q
		}) ||
		differs(put.Issuers, func(i *Issuer) bool {
			old, ok := p.issuers.Get(i.Name)
			return ok && old.Equal(i)
		}) ||
		differs(put.Certificates, func(c *Certificate) bool {
			old, ok := p.certificates.Get(c.Name)
			return ok && old.equal(c)
		})
}

// TakesAway reports whether somebody may do less after a change than before it, as far as that can be told from what is
// removed or replaced. Before there was a policy everybody could do everything.
func (p *Policy) TakesAway(remove Keys, put Items) bool {
	if p == nil {
		return true
	}
	remove.Quotas = nil
	return p.Changes(remove, Items{
		Tokens:       replacing(&p.tokens, put.Tokens, func(t *Token) string { return t.ID }),
		Roles:        replacing(&p.roles, put.Roles, func(r *Role) string { return r.Name }),
		Bindings:     replacing(&p.bindings, put.Bindings, func(b *Binding) string { return b.Name }),
		Issuers:      replacing(&p.issuers, put.Issuers, func(i *Issuer) string { return i.Name }),
		Certificates: replacing(&p.certificates, put.Certificates, func(c *Certificate) string { return c.Name }),
	})
}

// replacing returns those of some items that take the place of another.
func replacing[T any](tree interface{ Get(string) (*T, bool) }, put []*T, name func(*T) string) (list []*T) {
	for _, item := range put {
		if _, known := tree.Get(name(item)); known {
			list = append(list, item)
		}
	}
	return list
}

func has[T any](tree interface{ Get(string) (T, bool) }, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := tree.Get(name)
		return ok
	})
}

func differs[T any](list []*T, same func(*T) bool) bool {
	return slices.ContainsFunc(list, func(item *T) bool { return !same(item) })
}

func (t *Token) equal(o *Token) bool {
	return t.ID == o.ID && t.Hash == o.Hash && t.Principal == o.Principal && slices.Equal(t.Groups, o.Groups) &&
		t.Description == o.Description && t.CreatedWall == o.CreatedWall && t.CreatedBy == o.CreatedBy &&
		t.ExpiresWall == o.ExpiresWall && t.UsedWall == o.UsedWall
}

// Equal reports whether two issuers are believed in the same way.
func (i *Issuer) Equal(o *Issuer) bool {
	return i.Name == o.Name && i.URL == o.URL && slices.Equal(i.Audiences, o.Audiences) && i.Keys == o.Keys &&
		i.Principal == o.Principal && slices.Equal(i.Groups, o.Groups)
}

func (c *Certificate) equal(o *Certificate) bool {
	return c.Name == o.Name && c.SAN == o.SAN && c.Principal == o.Principal && slices.Equal(c.Groups, o.Groups)
}

// Check says what is wrong with the names in a change.
func (k *Keys) Check() error {
	return first(names("token", k.Tokens, MaxChange), names("role", k.Roles, MaxChange),
		names("binding", k.Bindings, MaxChange), names("quota", k.Quotas, MaxChange),
		names("issuer", k.Issuers, MaxChange), names("certificate rule", k.Certificates, MaxChange))
}

// Check says what is wrong with an asker: what is too much to travel with a command.
func (a *Asker) Check() error {
	return first(name("principal", a.Principal), text("token id", a.Token), names("group", a.Groups, MaxGroups))
}

// Text names what a change is about, for people: never a hash, nor a key.
func (k *Keys) Text() string {
	var parts []string
	for _, kind := range []struct {
		one  string
		list []string
	}{
		{"token", k.Tokens}, {"role", k.Roles}, {"binding", k.Bindings}, {"quota", k.Quotas}, {"issuer", k.Issuers},
		{"certificate", k.Certificates},
	} {
		for _, name := range kind.list {
			if kind.one == "quota" && name != "" {
				name = name[1:] // without what tells a principal from a namespace
			}
			parts = append(parts, kind.one+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}

package access

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
)

// Grants are what the bindings of one subject allow, or those of several. They are made when somebody asks for the
// first time, and shared by all who have the subject: a thousand bindings to a group cost their memory once, however
// many are in it. They are never changed.
type grants struct {
	rights  []*right // by namespace and prefix
	spaces  []space  // by name
	longest int      // the most bytes that a prefix has
	takes   bool     // something can be taken by them
}

// A space is what is allowed somewhere in a namespace, to anybody's or one's own.
type space struct {
	name   string
	verbs  Verbs
	rights []*right // those of the namespace
}

type where struct{ namespace, prefix string }

// A right is what is allowed below one prefix.
type right struct {
	where
	any, own Verbs
	under    []under // what is allowed to holders of some names only
	takers   []taker // by what something can be taken, in the order of the bindings
}

// A taker is a binding that allows to take something, and the group whose that is then; empty: the asker's alone.
type taker struct {
	verbs   Verbs
	holders string
	group   string
}

// allows reports whether something can be taken by the binding in the name of a holder.
func (t *taker) allows(v Verb, holder string) bool {
	return t.verbs.Has(v) && (!Verbs(holding).Has(v) || Covers(t.holders, holder))
}

type under struct {
	any, own Verbs
	holders  string
}

// grantsOf returns what somebody is allowed: by itself first, then by its groups in their order. That is the order in
// which bindings decide whose something is, and it is the same whether grants were merged or not: servers that
// remember other askers must not decide differently.
func (p *Policy) grantsOf(principal string, in []string) []*grants {
	var list []*grants
	if own := p.granted(subject(principalSubject, principal)); own != nil {
		list = append(list, own)
	}
	var key strings.Builder
	groups := len(list)
	for _, group := range in {
		name := subject(groupSubject, group)
		if g := p.granted(name); g != nil {
			list = append(list, g)
			key.WriteString(name)
		}
	}
	if len(list)-groups <= fewGroups {
		return list
	}
	if all := p.rules.merged(key.String(), list[groups:]); all != nil {
		return append(list[:groups:groups], all)
	}
	return list
}

// granted returns what a subject is allowed; nil: nothing is bound to it.
func (p *Policy) granted(subject string) *grants {
	if g := p.rules.find(subject); g != nil {
		return g
	}
	var w writer
	p.ofSubject(subject, func(b *Binding) bool {
		if role, ok := p.Role(b.Role); ok {
			w.binding(b, role)
		}
		return true
	})
	if w.rights == nil {
		return nil
	}
	g := gather(w.rights)
	p.rules.add(subject, g)
	return g
}

// A writer writes down what bindings allow. There may be very many in one command, so it allocates many rights at once.
type writer struct {
	rights []*right
	spare  []right
	takers []taker
}

// piece returns how many to allocate next: there may be only a few in all.
func (w *writer) piece(least int) int { return max(least, min(len(w.rights), 256)) }

// binding adds what a binding allows, at each prefix where it is looked for.
func (w *writer) binding(b *Binding, role *Role) {
	w.below(b.Prefix, w.right(b, role.Any, role.Own))
	eachBeside(b.Prefix, func(prefix string, verbs Verbs) bool {
		if (role.Any|role.Own)&verbs != 0 {
			w.below(prefix, w.right(b, role.Any&verbs, role.Own&verbs))
		}
		return true
	})
}

// below adds a right to what a prefix covers: the path itself, and what is below it.
func (w *writer) below(prefix string, r right) {
	w.at(prefix, r)
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		w.at(prefix+"/", r)
	}
}

func (w *writer) at(prefix string, r right) {
	if len(w.spare) == 0 {
		w.spare = make([]right, w.piece(4))
	}
	made := &w.spare[0]
	w.spare = w.spare[1:]
	*made, made.prefix = r, prefix
	w.rights = append(w.rights, made)
}

func (w *writer) right(b *Binding, free, own Verbs) right {
	r := right{where: where{namespace: b.Namespace}}
	if verbs := free & taken; verbs != 0 {
		if len(w.takers) == 0 {
			w.takers = make([]taker, w.piece(1))
		}
		w.takers[0] = taker{verbs, b.Holders, b.Group}
		r.takers, w.takers = w.takers[:1:1], w.takers[1:]
	}
	if b.Holders != "" {
		r.under = []under{{free & holding, own & holding, b.Holders}}
		free, own = free&^holding, own&^holding
	}
	r.any, r.own = free, own
	return r
}

// gather makes grants of rights, which it puts in order. Those at the same place become one, in the order in which
// they came.
func gather(rights []*right) *grants {
	slices.SortStableFunc(rights, func(a, b *right) int { return a.compare(b.where) })
	g := &grants{rights: rights[:0:len(rights)]}
	for i := 0; i < len(rights); {
		r, n := rights[i], 1
		for i+n < len(rights) && rights[i+n].where == r.where {
			n++
		}
		if n > 1 {
			r = join(rights[i : i+n])
		}
		g.rights = append(g.rights, r)
		g.longest = max(g.longest, len(r.prefix))
		g.takes = g.takes || len(r.takers) > 0
		i += n
	}
	g.rights = slices.Clip(g.rights)
	for from := 0; from < len(g.rights); {
		s := space{name: g.rights[from].namespace}
		to := from
		for ; to < len(g.rights) && g.rights[to].namespace == s.name; to++ {
			s.verbs |= g.rights[to].verbs()
		}
		s.rights = g.rights[from:to]
		g.spaces = append(g.spaces, s)
		from = to
	}
	return g
}

func join(rights []*right) *right {
	all := &right{where: rights[0].where}
	for _, r := range rights {
		all.any |= r.any
		all.own |= r.own
		all.under = append(all.under, r.under...)
		all.takers = append(all.takers, r.takers...)
	}
	return all
}

// verbs returns all that is allowed, also to holders of some names only.
func (r *right) verbs() Verbs {
	all := r.any | r.own
	for _, u := range r.under {
		all |= u.any | u.own
	}
	return all
}

func (w where) compare(o where) int {
	return cmp.Or(strings.Compare(w.namespace, o.namespace), strings.Compare(w.prefix, o.prefix))
}

var nothing space

// in returns what is allowed in a namespace because of bindings to it alone.
func (g *grants) in(namespace string) *space {
	low, high := 0, len(g.spaces)
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch s := &g.spaces[middle]; {
		case s.name == namespace:
			return s
		case s.name < namespace:
			low = middle + 1
		default:
			high = middle
		}
	}
	return &nothing
}

// at returns what is allowed below a prefix because of bindings to that very prefix; nil: nothing.
func (s *space) at(prefix string) *right {
	low, high := 0, len(s.rights)
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch r := s.rights[middle]; {
		case r.prefix == prefix:
			return r
		case r.prefix < prefix:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

// prefixes calls yield with each prefix that may cover a path, from the shortest on, until it returns false.
func prefixes(path string, longest int, yield func(string) bool) {
	if !yield("") {
		return
	}
	for i := range min(len(path), longest) {
		if (path[i] == '/' || i == len(path)-1) && !yield(path[:i+1]) {
			return
		}
	}
}

// rules are shared by policies that differ in the use of tokens alone, with the grants that were made by them. They are
// used from many goroutines, and never forget: a change of the policy begins new ones.
type rules struct {
	made   [256]atomic.Pointer[made]
	places atomic.Int64 // the rights in merged grants
}

// made is grants with what they are of, and others before them in the same list.
type made struct {
	of     string
	grants *grants
	before *made
}

// What is merged. An asker of few groups looks at those of each. Sets of groups could be as many as askers, so there is
// a bound to what they take, beside which those of each subject have one: the bindings.
const (
	fewGroups = 2
	maxPlaces = 1 << 18
	maxMerged = 1 << 13 // of one set: to put more in order would take too long within a command
)

// merged returns the grants of several subjects in one; nil: that would take too much memory.
func (r *rules) merged(of string, list []*grants) *grants {
	if g := r.find(of); g != nil {
		return g
	}
	n := 0
	for _, g := range list {
		n += len(g.rights)
	}
	switch {
	case r == nil || n > maxMerged:
		return nil
	case r.places.Add(int64(n)) > maxPlaces:
		r.places.Add(-int64(n))
		return nil
	}
	rights := make([]*right, 0, n)
	for _, g := range list {
		rights = append(rights, g.rights...)
	}
	all := gather(rights)
	r.add(of, all)
	return all
}

func (r *rules) list(of string) *atomic.Pointer[made] {
	sum := uint32(2166136261) // FNV-1a
	for i := range len(of) {
		sum = (sum ^ uint32(of[i])) * 16777619
	}
	return &r.made[(sum^sum>>16)%uint32(len(r.made))]
}

func (r *rules) find(of string) *grants {
	if r == nil {
		return nil
	}
	for m := r.list(of).Load(); m != nil; m = m.before {
		if m.of == of {
			return m.grants
		}
	}
	return nil
}

// add remembers grants. Two that make the same at once may both be remembered, which is rare and does no harm.
func (r *rules) add(of string, g *grants) {
	if r == nil {
		return
	}
	at, m := r.list(of), &made{of: of, grants: g}
	for m.before = at.Load(); !at.CompareAndSwap(m.before, m); {
		m.before = at.Load()
	}
}

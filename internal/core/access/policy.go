package access

import (
	"encoding/binary"
	"strings"

	"github.com/leasehold/leasehold/internal/btree"
)

// A Policy is everything that decides who may do what. It is never changed: With returns a changed copy, which
// shares what is the same. A nil Policy is that of a cluster where everybody may do everything.
type Policy struct {
	Revision uint64 // how often it was changed
	Declared Declaration

	rules *rules // nil: it has no items yet

	tokens       btree.Map[string, *Token]
	byHash       btree.Map[string, *Token]
	ofPrincipal  btree.Map[string, int] // how many tokens a principal has
	ofMember     btree.Map[string, int] // how many tokens put a principal into a group
	roles        btree.Map[string, *Role]
	bindings     btree.Map[string, *Binding]
	bySubject    btree.Map[string, *Binding] // by subject and name
	quotas       btree.Map[string, *Quota]
	issuers      btree.Map[string, *Issuer]
	certificates btree.Map[string, *Certificate]
	ofRules      btree.Map[string, int] // how many certificate rules name a principal; "": leave it to the certificate
}

// Items are parts of a policy.
type Items struct {
	Tokens       []*Token
	Roles        []*Role
	Bindings     []*Binding
	Quotas       []*Quota
	Issuers      []*Issuer
	Certificates []*Certificate
}

// Keys name parts of a policy.
type Keys struct {
	Tokens, Roles, Bindings, Quotas, Issuers, Certificates []string
}

// With returns the policy without some items, and then with others, which replace those of the same name.
func (p *Policy) With(remove Keys, put Items) *Policy {
	n := p.copy()
	n.Revision++
	n.rules = new(rules)
	for _, id := range remove.Tokens {
		n.dropToken(id)
	}
	for _, name := range remove.Bindings {
		n.dropBinding(name)
	}
	drop(&n.roles, remove.Roles)
	drop(&n.quotas, remove.Quotas)
	drop(&n.issuers, remove.Issuers)
	for _, name := range remove.Certificates {
		n.dropCertificate(name)
	}
	n.Put(put)
	return n
}

// Put adds items to a policy that nobody has seen yet.
func (p *Policy) Put(put Items) {
	if p.rules == nil {
		p.rules = new(rules)
	}
	for _, t := range put.Tokens {
		p.putToken(t)
	}
	for _, b := range put.Bindings {
		p.putBinding(b)
	}
	for _, r := range put.Roles {
		p.roles.Set(r.Name, r)
	}
	for _, q := range put.Quotas {
		p.quotas.Set(q.Key(), q)
	}
	for _, i := range put.Issuers {
		p.issuers.Set(i.Name, i)
	}
	for _, c := range put.Certificates {
		p.putCertificate(c)
	}
}

// copy returns a policy that can be changed.
func (p *Policy) copy() *Policy {
	if p == nil {
		return &Policy{}
	}
	return &Policy{
		Revision: p.Revision, Declared: p.Declared, rules: p.rules,
		tokens: fork(p.tokens), byHash: fork(p.byHash), ofPrincipal: fork(p.ofPrincipal), ofMember: fork(p.ofMember),
		roles: fork(p.roles), bindings: fork(p.bindings), bySubject: fork(p.bySubject),
		quotas: fork(p.quotas), issuers: fork(p.issuers), certificates: fork(p.certificates),
		ofRules: fork(p.ofRules),
	}
}

// fork returns a copy of a map that nobody changes any more. Copy writes to the map that it copies, and a policy is
// copied by the log and by doors at the same time: so it writes to a map of its own.
func fork[V any](m btree.Map[string, V]) btree.Map[string, V] { return *m.Copy() }

func drop[T any](from *btree.Map[string, *T], names []string) {
	for _, name := range names {
		from.Delete(name)
	}
}

func (p *Policy) putToken(t *Token) {
	p.dropToken(t.ID)
	p.tokens.Set(t.ID, t)
	p.byHash.Set(t.Hash, t)
	p.countToken(t, 1)
}

func (p *Policy) dropToken(id string) {
	t, ok := p.tokens.Delete(id)
	if !ok {
		return
	}
	p.byHash.Delete(t.Hash)
	p.countToken(t, -1)
}

func (p *Policy) countToken(t *Token, more int) {
	count(&p.ofPrincipal, t.Principal, more)
	for _, group := range t.Groups {
		count(&p.ofMember, member(t.Principal, group), more)
	}
}

// member names a principal in a group.
func member(principal, group string) string { return subject(principalSubject, principal) + group }

func (p *Policy) putCertificate(c *Certificate) {
	p.dropCertificate(c.Name)
	p.certificates.Set(c.Name, c)
	count(&p.ofRules, c.Principal, 1)
}

func (p *Policy) dropCertificate(name string) {
	if c, ok := p.certificates.Delete(name); ok {
		count(&p.ofRules, c.Principal, -1)
	}
}

// count adds to how many there are of a name. Of what there is none nothing is kept.
func count(of *btree.Map[string, int], name string, more int) {
	n, _ := of.Get(name)
	if n += more; n == 0 {
		of.Delete(name)
		return
	}
	of.Set(name, n)
}

// subject begins the keys of the bindings of a principal or a group, with nobody else's among them: the length of the
// name comes first, because it may contain any bytes.
func subject(kind byte, name string) string {
	return string(append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(name))), name...))
}

// The kinds of subjects.
const (
	groupSubject     = 'g'
	principalSubject = 'p'
)

// key is where a binding is found by its subject.
func (b *Binding) key() string {
	if b.Group != "" {
		return subject(groupSubject, b.Group) + b.Name
	}
	return subject(principalSubject, b.Principal) + b.Name
}

// ofSubject calls yield with the bindings of a subject, until it returns false. They come by name, not by arrival: the
// first binding that allows to take something decides whose it is, and a policy that was read from a snapshot
// must decide as the one that was written.
func (p *Policy) ofSubject(subject string, yield func(*Binding) bool) {
	p.bySubject.Ascend(subject, func(key string, b *Binding) bool {
		return strings.HasPrefix(key, subject) && yield(b)
	})
}

func (p *Policy) putBinding(b *Binding) {
	p.dropBinding(b.Name)
	p.bindings.Set(b.Name, b)
	p.bySubject.Set(b.key(), b)
}

func (p *Policy) dropBinding(name string) {
	if b, ok := p.bindings.Delete(name); ok {
		p.bySubject.Delete(b.key())
	}
}

// Items returns everything, each kind in the order of its names.
func (p *Policy) Items() (all Items) {
	if p == nil {
		return all
	}
	return Items{p.tokens.Values(), p.roles.Values(), p.bindings.Values(), p.quotas.Values(), p.issuers.Values(),
		p.certificates.Values()}
}

// At returns the revision of a policy; 0: there is none.
func (p *Policy) At() uint64 {
	if p == nil {
		return 0
	}
	return p.Revision
}

// Size returns how many items there are.
func (p *Policy) Size() int {
	if p == nil {
		return 0
	}
	return p.tokens.Len() + p.roles.Len() + p.bindings.Len() + p.quotas.Len() + p.issuers.Len() + p.certificates.Len()
}

// Token returns the token with an id.
func (p *Policy) Token(id string) (*Token, bool) { return p.tokens.Get(id) }

// TokenOf returns the token with the hash of a secret.
func (p *Policy) TokenOf(hash string) (*Token, bool) { return p.byHash.Get(hash) }

// HasTokens reports whether a principal has a token.
func (p *Policy) HasTokens(principal string) bool {
	_, ok := p.ofPrincipal.Get(principal)
	return ok
}

// Role returns a role, which may be one of the ready ones.
func (p *Policy) Role(name string) (*Role, bool) {
	if r, ok := p.roles.Get(name); ok {
		return r, true
	}
	return readyRole(name)
}

// Binding returns the binding with a name.
func (p *Policy) Binding(name string) (*Binding, bool) { return p.bindings.Get(name) }

// NamesGroup reports whether a binding is to a group: others need not travel with an asker.
func (p *Policy) NamesGroup(group string) bool {
	named := false
	p.ofSubject(subject(groupSubject, group), func(*Binding) bool {
		named = true
		return false
	})
	return named
}

// QuotaOfPrincipal returns the quota of a principal, or nil if it has none.
func (p *Policy) QuotaOfPrincipal(principal string) *Quota {
	if q, ok := p.quotas.Get("p" + principal); ok {
		return q
	}
	q, _ := p.quotas.Get("p" + Everybody)
	return q
}

// QuotaOfNamespace returns the quota of a namespace, or nil if it has none.
func (p *Policy) QuotaOfNamespace(namespace string) *Quota {
	q, _ := p.quotas.Get("n" + namespace)
	return q
}

// Issuer returns the issuer with a name.
func (p *Policy) Issuer(name string) (*Issuer, bool) { return p.issuers.Get(name) }

// Issuers returns whose JWTs are believed, in the order of their names.
func (p *Policy) Issuers() []*Issuer { return p.issuers.Values() }

// Certificates returns the rules for client certificates, in the order of their names.
func (p *Policy) Certificates() []*Certificate { return p.certificates.Values() }

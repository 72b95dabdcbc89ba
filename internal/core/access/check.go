package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
)

// The most that a policy has. They decide inside Apply, and so belong to a level.
const (
	MaxTokens   = 20000
	SpareTokens = 16 // beyond MaxTokens: for a server that lets a locked-out operator in again
	MaxBindings = 10000
	MaxItems    = 1000      // of each other kind
	MaxChange   = 2000      // items of one change
	MaxGroups   = 64        // of one asker, token or certificate
	MaxRules    = 64        // of one issuer
	MaxKeys     = 64 * 1024 // bytes of a JWKS
	maxText     = leasehold.MaxName
)

// Check says what is wrong with the items of a change, whatever the policy.
func (all *Items) Check() error {
	if n := all.Len(); n > MaxChange {
		return fmt.Errorf("a change has %d items: at most %d are allowed; send several", n, MaxChange)
	}
	return errors.Join(
		each(all.Tokens, (*Token).check), each(all.Roles, (*Role).check), each(all.Bindings, (*Binding).check),
		each(all.Quotas, (*Quota).check), each(all.Issuers, (*Issuer).check),
		each(all.Certificates, (*Certificate).check))
}

// each returns the first error.
func each[T any](list []*T, check func(*T) error) error {
	for _, item := range list {
		if err := check(item); err != nil {
			return err
		}
	}
	return nil
}

func (t *Token) check() error {
	if len(t.Hash) != 32 {
		return fmt.Errorf("token %s: its hash has %d bytes, and a SHA-256 has 32", t.ID, len(t.Hash))
	}
	if strings.Contains(t.Principal, ":") {
		return fmt.Errorf("principal %q of token %s has a colon: such names are those of issuers and certificates",
			t.Principal, t.ID)
	}
	return first(notSystem(t.Principal), name("token id", t.ID), name("principal", t.Principal),
		text("description", t.Description),
		text("creator", t.CreatedBy), names("group", t.Groups, MaxGroups))
}

func (r *Role) check() error {
	switch {
	case IsReady(r.Name):
		return fmt.Errorf("role %s cannot be changed: make one of another name", r.Name)
	case r.Any|r.Own == 0:
		return fmt.Errorf("role %s has no verbs: give some of %s", r.Name, strings.Join(Names(), ", "))
	case (r.Any|r.Own)&^All != 0:
		return fmt.Errorf("role %s has a verb that is unknown here", r.Name)
	case r.Own&^Owned != 0:
		return fmt.Errorf("role %s: %s cannot be limited to one's own: nobody owns what it is done to", r.Name,
			r.Own&^Owned)
	}
	return name("role", r.Name)
}

func (b *Binding) check() error {
	if (b.Principal == "") == (b.Group == "") {
		return fmt.Errorf("binding %s is to a principal or to a group: give one of them", b.Name)
	}
	return first(name("binding", b.Name), name("role", b.Role), text("principal", b.Principal), text("group", b.Group),
		name("namespace", b.Namespace), text("prefix", b.Prefix), text("holder prefix", b.Holders))
}

func (q *Quota) check() error {
	if (q.Principal == "") == (q.Namespace == "") {
		return errors.New("a quota is that of a principal or of a namespace: give one of them")
	}
	for _, n := range []int64{q.Leases, q.Sessions, q.Waiters, q.Records, q.Bytes, q.Watches, q.Requests, q.Renewals} {
		if n < 0 {
			return fmt.Errorf("quota %d is negative: 0 stands for no limit", n)
		}
	}
	return first(text("principal", q.Principal), text("namespace", q.Namespace))
}

func (i *Issuer) check() error {
	switch {
	case i.Keys == "" && !askedSafely(i.URL):
		return fmt.Errorf("issuer %s: its keys would be fetched from %q, where others could change them on the way: "+
			"use https, or give the keys", i.Name, i.URL)
	case strings.Contains(i.Name, ":") || i.Name == CertificateIssuer || i.Name == AzureIssuer:
		return fmt.Errorf("issuer %q: use a name without a colon, other than %s and %s", i.Name, CertificateIssuer,
			AzureIssuer)
	case len(i.Audiences) == 0:
		return fmt.Errorf("issuer %s has no audience: give the one that its tokens for this server have", i.Name)
	case len(i.Keys) > MaxKeys:
		return fmt.Errorf("issuer %s: its keys have %d bytes, and at most %d are allowed", i.Name, len(i.Keys), MaxKeys)
	case len(i.Groups) > MaxRules:
		return fmt.Errorf("issuer %s has %d rules: at most %d are allowed", i.Name, len(i.Groups), MaxRules)
	}
	for _, r := range i.Groups {
		if err := first(name("claim", r.Claim), name("value of a claim", r.Value), name("group", r.Group)); err != nil {
			return fmt.Errorf("issuer %s: %w", i.Name, err)
		}
	}
	return first(name("issuer", i.Name), name("url of the issuer", i.URL), text("claim", i.Principal),
		names("audience", i.Audiences, MaxGroups))
}

func (c *Certificate) check() error {
	kind, pattern, _ := strings.Cut(c.SAN, ":")
	if kind != "dns" && kind != "uri" && kind != "email" || pattern == "" {
		return fmt.Errorf("certificate rule %s: %q is no name in a certificate; write dns:NAME, uri:NAME or "+
			"email:NAME, where * stands for any text", c.Name, c.SAN)
	}
	return first(notSystem(c.Principal), name("certificate rule", c.Name), text("name", c.SAN), text("principal",
		c.Principal),
		names("group", c.Groups, MaxGroups))
}

// notSystem refuses the name by which the journal calls servers themselves.
func notSystem(principal string) error {
	if principal == System.Principal {
		return fmt.Errorf("principal %s is what servers call themselves: choose another name", principal)
	}
	return nil
}

// askedSafely reports whether a URL is one of TLS, or of this machine.
func askedSafely(url string) bool {
	rest, plain := strings.CutPrefix(url, "http://")
	if !plain {
		return strings.HasPrefix(url, "https://")
	}
	host, _, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return false // what stands before it is no host
	}
	if strings.HasPrefix(host, "[::1]") {
		host = "localhost" + host[len("[::1]"):]
	}
	host, _, _ = strings.Cut(host, ":")
	return host == "localhost" || host == "127.0.0.1"
}

// What begins the names of principals that are proven by something other than a token of ours.
const (
	CertificateIssuer = "cert"
	AzureIssuer       = "azure"
)

// Fits says why a policy cannot be in force: it has too much, a binding to a role that does not exist, or nobody who
// could change it.
func (p *Policy) Fits() error {
	switch {
	case p.tokens.Len() > MaxTokens+SpareTokens:
		return p.tooManyTokens()
	case p.bindings.Len() > MaxBindings:
		return fmt.Errorf("there would be %d bindings: at most %d are allowed", p.bindings.Len(), MaxBindings)
	case max(p.roles.Len(), p.quotas.Len(), p.issuers.Len(), p.certificates.Len()) > MaxItems:
		return fmt.Errorf("there would be more than %d roles, quotas, issuers or certificate rules", MaxItems)
	}
	if p.byHash.Len() != p.tokens.Len() {
		return errors.New("two tokens would have the same secret")
	}
	for _, b := range p.bindings.Values() {
		if _, ok := p.Role(b.Role); !ok {
			return fmt.Errorf("binding %s: there is no role %s; make it first, or use another; known roles: %s", b.Name,
				b.Role, p.roleNames())
		}
	}
	if !p.hasAdmin(0) {
		return errors.New("nobody could change access any more: keep a binding of the role admin, for all namespaces " +
			"and without a prefix, to somebody who has a token")
	}
	return nil
}

// FitsAfter is Fits for what somebody makes of a policy, which may be nil. Tokens beyond MaxTokens are made by servers
// alone; while there are some, a change that adds none is still allowed. wall is the clock of the door, by which tokens
// end, in Unix nanoseconds; 0: nobody knows. If all admins' tokens have ended, whatever else fits may be changed. So a
// clock that is wrong allows nothing that Fits forbids, and forbids nothing that keeps an admin by that clock.
func (p *Policy) FitsAfter(before *Policy, by *Asker, wall int64) error {
	had := 0
	if before != nil {
		had = before.tokens.Len()
	}
	if n := p.tokens.Len(); n > MaxTokens && n > had && by != &System {
		return p.tooManyTokens()
	}
	if err := p.Fits(); err != nil {
		return err
	}
	if !p.hasAdmin(wall) && (before == nil || before.hasAdmin(wall)) {
		return errors.New("nobody could change access any more, because all tokens of admins have expired: keep one " +
			"that has not, or make another one first")
	}
	return nil
}

// shownRoles is how many roles an error names.
const shownRoles = 20

func (p *Policy) roleNames() string {
	var names []string
	for _, r := range Ready() {
		names = append(names, r.Name)
	}
	more := ""
	for _, r := range p.roles.Values() {
		if len(names) == shownRoles {
			more = ", …"
			break
		}
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ") + more
}

func (p *Policy) tooManyTokens() error {
	return fmt.Errorf("there would be %d tokens: at most %d are allowed; revoke some", p.tokens.Len(), MaxTokens)
}

// hasAdmin reports whether somebody who can be proven at a time may change the policy; 0: at some time. It looks at
// each credential once, however many bindings there are; unless nobody else may, who has a certificate of which name.
func (p *Policy) hasAdmin(wall int64) bool {
	principals, groups, certified := map[string]bool{}, map[string]bool{}, []string(nil)
	for _, b := range p.bindings.Values() {
		role, ok := p.Role(b.Role)
		switch {
		case !ok || !role.Any.Has(Admin) || b.Namespace != AllNamespaces || b.Prefix != "":
		case b.Group != "":
			groups[b.Group] = true
		default:
			principals[b.Principal] = true
			if name, ok := strings.CutPrefix(b.Principal, CertificateIssuer+":"); ok {
				certified = append(certified, name)
			}
		}
	}
	return p.provesAny(principals, groups, wall) || slices.ContainsFunc(certified, func(name string) bool {
		found, _ := p.certifies(name)
		return found
	})
}

// provesAny reports whether there is a credential for one of some principals, or for somebody in one of some groups.
func (p *Policy) provesAny(principals, groups map[string]bool, wall int64) bool {
	in := func(group string) bool { return groups[group] }
	for _, c := range p.certificates.Values() {
		if principals[c.Principal] || slices.ContainsFunc(c.Groups, in) {
			return true
		}
	}
	issuers := map[string]bool{}
	for principal := range principals {
		issuers[origin(principal)] = true
	}
	for _, i := range p.issuers.Values() {
		if issuers[i.Name+":"] || slices.ContainsFunc(i.Groups, func(r ClaimRule) bool { return groups[r.Group] }) {
			return true
		}
	}
	return len(principals)+len(groups) > 0 && slices.ContainsFunc(p.tokens.Values(), func(t *Token) bool {
		ended := wall != 0 && t.ExpiresWall != 0 && t.ExpiresWall <= wall
		return !ended && (principals[t.Principal] || slices.ContainsFunc(t.Groups, in))
	})
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func name(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is missing: give 1 to %d bytes", what, maxText)
	}
	return text(what, s)
}

func text(what, s string) error {
	if len(s) > maxText {
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", what, len(s), maxText)
	}
	return nil
}

func names(what string, list []string, most int) error {
	if len(list) > most {
		return fmt.Errorf("%d of %s are given: at most %d are allowed", len(list), what, most)
	}
	for _, s := range list {
		if err := name(what, s); err != nil {
			return err
		}
	}
	return nil
}

package access

import (
	"slices"
	"strings"
)

// proves reports whether there may be a credential for a principal. looked is how much was looked at.
func (p *Policy) proves(principal string) (found bool, looked int) {
	if p.HasTokens(principal) {
		return true, 1
	}
	return p.provesOther(principal)
}

// provesOther is proves for credentials other than tokens: by a certificate rule, by an issuer, or by the key of an
// account, which is not the policy's but each server's to know.
func (p *Policy) provesOther(principal string) (found bool, looked int) {
	if _, mapped := p.ofRules.Get(principal); mapped {
		return true, 1
	}
	issuer, name, foreign := strings.Cut(principal, ":")
	switch {
	case !foreign:
		return false, 1
	case issuer == AzureIssuer:
		return true, 1
	case issuer == CertificateIssuer:
		return p.certifies(name)
	}
	_, found = p.issuers.Get(issuer)
	return found, 1
}

// certifies reports whether a certificate rule makes a principal of a name in a certificate.
func (p *Policy) certifies(name string) (found bool, looked int) {
	if _, any := p.ofRules.Get(""); !any {
		return false, 1
	}
	p.certificates.Scan(func(_ string, c *Certificate) bool {
		found = c.Principal == "" && c.Names(name)
		return !found
	})
	return found, p.certificates.Len()
}

// provesIn reports whether there may be a credential that proves a principal to be in a group. looked is how much was
// looked at.
func (p *Policy) provesIn(principal, group string) (found bool, looked int) {
	if _, found = p.ofMember.Get(member(principal, group)); found || ofAccount(principal) {
		return true, 1
	}
	looked = p.otherGroups(principal, func(g string) bool {
		found = g == group
		return !found
	})
	return found, looked
}

// ofAccount reports whether a principal is an account of Azure. Which groups it is in is each server's to know, as its
// key is.
func ofAccount(principal string) bool { return origin(principal) == AzureIssuer+":" }

// provenIn returns those of some groups that somebody may be in who was proven by something other than a token.
func (p *Policy) provenIn(principal string, groups []string) []string {
	if len(groups) == 0 || ofAccount(principal) {
		return groups
	}
	var may []string
	p.otherGroups(principal, func(g string) bool {
		may = append(may, g)
		return true
	})
	slices.Sort(may)
	not := func(group string) bool {
		_, found := slices.BinarySearch(may, group)
		return !found
	}
	if slices.ContainsFunc(groups, not) { // rarely: the server that sent them knows another policy
		groups = slices.DeleteFunc(slices.Clone(groups), not)
	}
	return groups
}

// otherGroups calls yield with each group that a principal may be in by a certificate rule or an issuer, until it
// returns false. Which of an issuer's rules are met is for its JWTs to say.
func (p *Policy) otherGroups(principal string, yield func(group string) bool) (looked int) {
	issuer, name, foreign := strings.Cut(principal, ":")
	certified := foreign && issuer == CertificateIssuer
	_, mapped := p.ofRules.Get(principal)
	if i, ok := p.issuers.Get(issuer); foreign && ok {
		for _, r := range i.Groups {
			if looked++; !yield(r.Group) {
				return looked
			}
		}
	}
	if !mapped && !certified {
		return looked + 1
	}
	p.certificates.Scan(func(_ string, c *Certificate) bool {
		looked++
		mine := c.Principal == principal || c.Principal == "" && certified && c.Names(name)
		return !mine || !slices.ContainsFunc(c.Groups, func(g string) bool { return !yield(g) })
	})
	return looked + 1
}

// Names reports whether a rule is for a name in a certificate, of the rule's kind: that of a host is in lower case.
func (c *Certificate) Names(name string) bool {
	kind, pattern, _ := strings.Cut(c.SAN, ":")
	if kind == "dns" {
		pattern = strings.ToLower(pattern)
	}
	return Matches(pattern, name)
}

// Matches reports whether a text is one of those that a pattern stands for: a star in it is any text, also none.
func Matches(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !starred {
		return ok && text == ""
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], after
	}
}

// unproven returns whom the issuers and certificate rules proved that another policy does not have, in order: a
// principal, or all whose names begin with something that ends with a colon. Some of these may still be proven.
func (p *Policy) unproven(next *Policy) (gone []string) {
	p.issuers.Scan(func(name string, _ *Issuer) bool {
		if _, ok := next.issuers.Get(name); !ok {
			gone = append(gone, name+":")
		}
		return true
	})
	p.certificates.Scan(func(name string, c *Certificate) bool {
		if now, ok := next.certificates.Get(name); ok && now.SAN == c.SAN && now.Principal == c.Principal {
			return true
		}
		if who := c.Principal; who == "" {
			gone = append(gone, CertificateIssuer+":")
		} else if still, _ := next.proves(who); !still {
			gone = append(gone, who)
		}
		return true
	})
	slices.Sort(gone)
	return slices.Compact(gone)
}

// origin returns what begins the names of all principals that are proven as one is; empty: nothing does.
func origin(principal string) string { return principal[:strings.IndexByte(principal, ':')+1] }

package credential

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"

	"github.com/leasehold/leasehold/internal/core/access"
)

func accountKey(account string) key { return key{byAccount, sha256.Sum256([]byte(account))} }

// judgeCertificate says who has a certificate. The first rule that matches, by its name, says which principal that is;
// each one that does adds its groups.
func (l *Login) judgeCertificate(c *x509.Certificate, k *known) (*entry, error) {
	now := l.config.Now()
	switch {
	case !now.Before(c.NotAfter): // the connection may be older
		return nil, refuse(Expired, expiredMessage("certificate", c.NotAfter))
	case now.Before(c.NotBefore):
		return nil, refuse(NotYet, "the certificate is not valid yet: check the clocks")
	}
	asker := &access.Asker{}
	for _, rule := range k.rules {
		name, ok := matchCertificate(rule, c)
		if !ok {
			continue
		}
		if asker.Principal == "" {
			if asker.Principal = rule.Principal; asker.Principal == "" {
				asker.Principal = access.CertificateIssuer + ":" + name
			}
		}
		asker.Groups = append(asker.Groups, rule.Groups...)
	}
	if asker.Principal == "" {
		return nil, refuse(Unmapped, "no rule says whose the client certificate is: send a token too, or ask an admin "+
			"for a certificate rule that matches a name in it")
	}
	asker.Groups = k.named(sorted(asker.Groups))
	return &entry{proof: &Proof{Asker: asker, Kind: Certificate, Expires: c.NotAfter, certificate: c}}, nil
}

// matchCertificate returns the first name of a certificate that a rule is for.
func matchCertificate(rule *access.Certificate, c *x509.Certificate) (name string, ok bool) {
	kind, pattern, _ := strings.Cut(rule.SAN, ":")
	var names []string
	switch kind {
	case "dns":
		pattern = strings.ToLower(pattern)
		for _, n := range c.DNSNames {
			names = append(names, strings.ToLower(n))
		}
	case "email":
		names = c.EmailAddresses
	case "uri":
		for _, u := range c.URIs {
			names = append(names, u.String())
		}
	}
	for _, n := range names {
		if n != "" && access.Matches(pattern, n) {
			return n, true
		}
	}
	return "", false
}

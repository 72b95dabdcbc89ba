package credential

import (
	"crypto/x509"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core/access"
)

func TestCertificates(t *testing.T) {
	spiffe, _ := url.Parse("spiffe://example/ns/ci/sa/builder")
	d := newDesk(t, access.Items{Bindings: bindTo("ci", "all"), Certificates: []*access.Certificate{
		{Name: "1", SAN: "uri:spiffe://example/ns/ci/*", Principal: "builder", Groups: []string{"ci", "unbound"}},
		{Name: "2", SAN: "dns:*.Hosts.example"},
		{Name: "3", SAN: "email:*@example.com", Groups: []string{"all"}},
	}})
	lasts := d.now().Add(time.Hour)
	made := func(c x509.Certificate) Shown {
		c.NotBefore, c.NotAfter = d.now().Add(-time.Hour), lasts
		c.Raw = []byte(c.Subject.CommonName)
		return Shown{Certificate: &c}
	}
	named := func(id string, c x509.Certificate) Shown {
		c.Subject.CommonName = id
		return made(c)
	}
	for _, c := range []struct {
		shown     Shown
		principal string
		groups    []string
	}{
		{named("a", x509.Certificate{URIs: []*url.URL{spiffe}}), "builder", []string{"ci"}},
		{named("b", x509.Certificate{DNSNames: []string{"x", "Web1.hosts.example"}}), "cert:web1.hosts.example", nil},
		{named("c", x509.Certificate{EmailAddresses: []string{"ann@example.com"}}), "cert:ann@example.com",
			[]string{"all"}},
		{named("d", x509.Certificate{URIs: []*url.URL{spiffe}, EmailAddresses: []string{"ann@example.com"}}), "builder",
			[]string{"all", "ci"}},
	} {
		p := d.good(c.shown)
		if p.Asker.Principal != c.principal || !slices.Equal(p.Asker.Groups, c.groups) || !p.Expires.Equal(lasts) {
			t.Errorf("it is %+v until %v, want %s %v", p.Asker, p.Expires, c.principal, c.groups)
		}
		if d.good(c.shown) != p {
			t.Error("it is judged again")
		}
	}
	d.bad(named("e", x509.Certificate{DNSNames: []string{"hosts.example", "evil.example"}}), Unmapped)
	d.bad(named("web1.hosts.example", x509.Certificate{}), Unmapped) // its common name says nothing
	again := named("a", x509.Certificate{URIs: []*url.URL{spiffe}})
	d.pass(time.Hour)
	d.bad(again, Expired) // on a connection that is older

	// A secret decides, also where there is a certificate.
	other, _ := NewToken()
	d.bad(Shown{Secret: other, Certificate: again.Certificate}, Unknown)
	d.bad(Shown{Secret: string(again.Certificate.Raw)}, Malformed)
}

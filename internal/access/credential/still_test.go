package credential

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core/access"
)

// holds wants a proof to hold until a moment.
func (d *desk) holds(p *Proof, until time.Time) {
	d.t.Helper()
	if got, err := d.Still(p); err != nil || !got.Equal(until) {
		d.t.Errorf("it holds until %v, %v, want %v", got, err, until)
	}
}

// over wants a proof not to hold any more.
func (d *desk) over(p *Proof, why Reason) {
	d.t.Helper()
	_, err := d.Still(p)
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != why {
		d.t.Errorf("it ends with %v, want %s", err, why)
	}
}

func TestATokenThatIsChangedWhileItIsUsed(t *testing.T) {
	secret, token := newToken("t1", "ann", "team", "unbound")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}, Bindings: bindTo("team")})
	p := d.good(Shown{Secret: secret})
	change := func(f func(*access.Token)) {
		changed := *token
		f(&changed)
		d.set(access.Items{Tokens: []*access.Token{&changed}})
	}
	d.holds(p, time.Time{})
	end := d.now().Add(time.Minute)
	change(func(t *access.Token) { t.ExpiresWall = end.UnixNano() })
	d.holds(p, end)
	d.pass(time.Minute)
	d.over(p, Expired)
	change(func(t *access.Token) { t.ExpiresWall = end.Add(time.Minute).UnixNano() })
	d.holds(p, end.Add(time.Minute))
	change(func(t *access.Token) { t.Groups = []string{"team"} }) // the other one has no binding
	d.holds(p, time.Time{})
	change(func(t *access.Token) { t.Groups = nil })
	d.over(p, Unknown)
	change(func(t *access.Token) { t.Principal = "bob" })
	d.over(p, Unknown)
	_, other := newToken("t1", "ann", "team")
	change(func(t *access.Token) { t.Hash = other.Hash })
	d.over(p, Unknown)
	change(func(*access.Token) {})
	d.holds(p, time.Time{})
	d.remove(access.Keys{Tokens: []string{"t1"}})
	d.over(p, Unknown)
	d.local.Store(nil)
	d.holds(p, time.Time{})
}

func TestAnIssuerThatIsRemovedWhileItsJWTIsUsed(t *testing.T) {
	d, provider, kid := newOffice(t)
	p := d.good(Shown{Secret: provider.Sign(kid, provider.Claims(d.now(), nil))})
	same := issued("ci", provider)
	d.set(access.Items{Issuers: []*access.Issuer{same, issued("other", provider)}})
	d.holds(p, p.Expires)
	changed := *same
	changed.Groups = nil
	d.set(access.Items{Issuers: []*access.Issuer{&changed}})
	d.over(p, Issuer)
	d.set(access.Items{Issuers: []*access.Issuer{same}})
	d.holds(p, p.Expires)
	d.remove(access.Keys{Issuers: []string{"ci"}})
	d.over(p, Issuer)
	d.set(access.Items{Issuers: []*access.Issuer{same}})
	d.pass(time.Hour)
	d.over(p, Expired)
}

func TestARuleThatIsRemovedWhileItsCertificateIsUsed(t *testing.T) {
	hosts := &access.Certificate{Name: "2", SAN: "dns:*.example", Groups: []string{"hosts"}}
	d := newDesk(t, access.Items{Bindings: bindTo("hosts"), Certificates: []*access.Certificate{hosts}})
	p := d.good(Shown{Certificate: &x509.Certificate{Raw: []byte("a"), DNSNames: []string{"a.example"},
		NotBefore: d.now(), NotAfter: d.now().Add(time.Hour)}})
	d.set(access.Items{Certificates: []*access.Certificate{{Name: "3", SAN: "dns:a.*", Principal: "ann"}}})
	d.holds(p, p.Expires)
	d.set(access.Items{Certificates: []*access.Certificate{{Name: "1", SAN: "dns:a.*", Principal: "ann"}}})
	d.over(p, Unmapped) // it is ann's now
	d.remove(access.Keys{Certificates: []string{"1"}})
	d.set(access.Items{Certificates: []*access.Certificate{{Name: "2", SAN: "dns:*.example"}}})
	d.over(p, Unmapped) // it is in no group
	d.remove(access.Keys{Bindings: []string{"b0"}})
	d.holds(p, p.Expires) // which has no rights any more
	d.remove(access.Keys{Certificates: []string{"2", "3"}})
	d.over(p, Unmapped)
}

package access

import (
	"fmt"
	"strings"
	"testing"
)

// A server that lags behind may send whom it believed before.
func TestWhoCannotBeProvenAnyMoreMayNothing(t *testing.T) {
	p := policy(&Binding{Role: "member", Group: "a", Namespace: "default"}).With(Keys{}, Items{
		Issuers: []*Issuer{{Name: "ci", Groups: []ClaimRule{{"sub", "*", "a"}}}},
		Certificates: []*Certificate{{Name: "ops", SAN: "dns:x", Principal: "ops", Groups: []string{"a"}},
			{Name: "hosts", SAN: "dns:*.Example.com", Groups: []string{"a"}}, {Name: "mail", SAN: "email:Ann@example.org", Groups: []string{"a"}}},
	})
	for _, c := range []struct {
		who    string
		remove Keys
		before bool
	}{
		{"ci:ann", Keys{Issuers: []string{"ci"}}, true},
		{"ci2:ann", Keys{}, false},
		{"ops", Keys{Certificates: []string{"ops"}}, true},
		{"cert:a.example.com", Keys{Certificates: []string{"hosts"}}, true},
		{"cert:Ann@example.org", Keys{Certificates: []string{"mail"}}, true},
		{"cert:ann@example.org", Keys{}, false},
		{"cert:x", Keys{}, false}, // its certificate is that of ops
		{"ann", Keys{}, false},
		{"azure:account", Keys{Issuers: []string{"ci"}}, true},
	} {
		asker := &Asker{Principal: c.who, Groups: []string{"a"}}
		if got := p.Permit(asker); got.May(Acquire, "default", "x", nil) != c.before || got.Revoked() == c.before {
			t.Errorf("%s is proven: %v", c.who, !c.before)
		}
		after := c.before && strings.HasPrefix(c.who, AzureIssuer)
		if got := p.With(c.remove, Items{}).Permit(asker); got.Revoked() == after {
			t.Errorf("%s is proven afterwards: %v", c.who, !after)
		}
	}
}

// What is on its way has the groups of the token as they were.
func TestATokenHasTheGroupsOfThePolicy(t *testing.T) {
	token := &Token{ID: "t", Hash: strings.Repeat("h", 32), Principal: "ann", Groups: []string{"new", "unbound"}}
	p := policy(&Binding{Role: "member", Group: "old", Namespace: "default", Prefix: "o/"},
		&Binding{Role: "member", Group: "new", Namespace: "default", Prefix: "n/"}).With(Keys{}, Items{Tokens: []*Token{token}})
	stale := p.Compile(&Asker{Principal: "ann", Groups: []string{"old"}, Token: "t"})
	if stale.May(Acquire, "default", "o/x", nil) || stale.Owns(&Owner{Principal: "bob", Group: "old"}) {
		t.Error("it has the rights of a group that its token is not in")
	}
	if !stale.May(Acquire, "default", "n/x", nil) || !stale.Owns(&Owner{Principal: "bob", Group: "new"}) ||
		stale.OwnerOf(Acquire, "default", "n/x", "ann").Group != "new" {
		t.Error("it lacks the rights of a group that its token is in")
	}
	if stale.Owns(&Owner{Principal: "bob", Group: "unbound"}) {
		t.Error("it has what belongs to a group that nothing is bound to")
	}
	if !p.Compile(&Asker{Principal: "bob", Token: "t"}).Revoked() {
		t.Error("somebody else has the token")
	}
}

// Removing one issuer, or rule, is always possible, whatever is bound to whom; all of them at once may not be. It takes
// no longer than a change may.
func TestLossesOfAnIssuerAreBounded(t *testing.T) {
	put := Items{Roles: []*Role{{Name: "end", Any: Of(Renew), EndOnRevoke: true}}}
	for i := range MaxItems {
		put.Issuers = append(put.Issuers, &Issuer{Name: fmt.Sprint("ci", i)})
		put.Certificates = append(put.Certificates, &Certificate{Name: fmt.Sprint(i), SAN: fmt.Sprintf("dns:*.%d.example", i)})
	}
	for i := range MaxBindings {
		b := &Binding{Name: fmt.Sprint(i), Role: "end", Namespace: "default", Prefix: fmt.Sprint(i)}
		if b.Group = fmt.Sprint(i); i%2 == 0 {
			b.Group, b.Principal = "", fmt.Sprintf("cert:x.%d.example", i)
		}
		put.Bindings = append(put.Bindings, b)
	}
	p, all := (*Policy)(nil).With(Keys{}, put), put.Keys()
	for _, remove := range []Keys{{Issuers: all.Issuers[:1]}, {Certificates: all.Certificates[:1]}} {
		within(t, "to find what is lost with one", func() {
			list := p.Losses(p.With(remove, Items{}), nil)
			if len(list) == 0 || len(list) > MaxLosses || !list.Sorted() {
				t.Errorf("%d rights are lost", len(list))
			}
		})
	}
	within(t, "to find what is lost with all", func() {
		if n := len(p.Losses(p.With(Keys{Issuers: all.Issuers, Certificates: all.Certificates}, Items{}), nil)); n != MaxLosses+1 {
			t.Errorf("%d rights are lost", n)
		}
	})
	within(t, "to judge one by all rules", func() { p.Compile(&Asker{Principal: "cert:y"}) })
}

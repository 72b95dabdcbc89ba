package access

import (
	"fmt"
	"testing"
	"time"
)

// within fails if something takes far longer than it should: a quadratic loop over as much as there may be takes minutes.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	begin := time.Now()
	fn()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("%s takes %v", what, took)
	} else {
		t.Logf("%s takes %v", what, took)
	}
}

// As many groups that nobody is in as there may be, and as many tokens.
func TestToLookForAnAdminCostsLittle(t *testing.T) {
	p := &Policy{}
	var all Items
	for i := range MaxTokens {
		token := &Token{ID: fmt.Sprint(i), Hash: fmt.Sprintf("%032d", i), Principal: fmt.Sprint(i)}
		for g := range MaxGroups {
			token.Groups = append(token.Groups, fmt.Sprintf("some-%d", g))
		}
		all.Tokens = append(all.Tokens, token)
	}
	for i := range MaxBindings {
		all.Bindings = append(all.Bindings, &Binding{Name: fmt.Sprint(i), Role: "admin", Group: fmt.Sprintf("none-%d", i),
			Namespace: "*"})
	}
	p.Put(all)
	within(t, "to look for an admin who does not exist", func() {
		if p.Fits() == nil {
			t.Error("there is an admin")
		}
	})
}

func TestAnAdminByACertificate(t *testing.T) {
	p := policy(&Binding{Role: "admin", Principal: "ops", Namespace: "*"})
	if p.Fits() == nil {
		t.Error("somebody is let in without any credential")
	}
	p = p.With(Keys{}, Items{Certificates: []*Certificate{{Name: "ops", SAN: "dns:ops.example.com", Principal: "ops"}}})
	if err := p.Fits(); err != nil {
		t.Errorf("an admin who has a certificate: %v", err)
	}
}

// As many bindings to one group as there may be, each for another place. That many are read from a snapshot and
// compiled for each who is in the group, between two commands.
func TestManyBindingsToOneGroup(t *testing.T) {
	var all Items
	for i := range MaxBindings {
		all.Bindings = append(all.Bindings, &Binding{Name: fmt.Sprint("b", i*7919%MaxBindings), Role: "member", Group: "all",
			Namespace: "default", Prefix: fmt.Sprintf("team-%d", i*7919%MaxBindings)})
	}
	p := &Policy{}
	within(t, "to restore them", func() { p.Put(all) })
	var q *Policy
	within(t, "to replace 2,000", func() { q = p.With(Keys{}, Items{Bindings: all.Bindings[:MaxChange]}) })
	var permit *Permit
	within(t, "to compile them", func() { permit = q.Compile(&Asker{Principal: "azure:ann", Groups: []string{"all"}}) })
	if !permit.May(Acquire, "default", "team-77/x", nil) || permit.May(Acquire, "default", "team-77x", nil) {
		t.Error("they decide otherwise than they say")
	}
}

// By the clock of the door an admin whose token has ended is none, unless there was no other before.
func TestAnAdminWhoseTokenHasEnded(t *testing.T) {
	token := func(ends int64) Items {
		return Items{Tokens: []*Token{{ID: "t", Hash: "hash", Principal: "ann", ExpiresWall: ends}}}
	}
	none := policy(&Binding{Role: "admin", Principal: "ann", Namespace: "*"})
	forever, ended := none.With(Keys{}, token(0)), none.With(Keys{}, token(100))
	for _, c := range []struct {
		before, after *Policy
		wall          int64
		want          bool
	}{
		{nil, ended, 99, true}, {nil, ended, 100, false}, {nil, forever, 100, true},
		{forever, ended, 99, true}, {forever, ended, 100, false}, {forever, ended, 0, true},
		{ended, ended, 100, true}, {ended, none, 100, false}, {ended, forever, 100, true},
	} {
		if err := c.after.FitsAfter(c.before, nil, c.wall); (err == nil) != c.want {
			t.Errorf("at %d, from %v to %v: %v", c.wall, c.before, c.after, err)
		}
	}
}

package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A desk is a login with a policy and a clock that tests set.
type desk struct {
	*Login
	t       testing.TB
	local   atomic.Pointer[access.Policy]
	newest  atomic.Pointer[access.Policy] // nil: as local
	down    atomic.Bool
	reads   atomic.Int64
	time    atomic.Pointer[time.Time]
	refused atomic.Int64
	log     *strings.Builder
}

func newDesk(t testing.TB, items access.Items) *desk {
	d := &desk{t: t, log: &strings.Builder{}}
	now := time.Now().Truncate(time.Second)
	d.time.Store(&now)
	d.set(items)
	d.Login = New(Config{
		Local: d.local.Load,
		Fresh: func(context.Context) (*access.Policy, error) {
			d.reads.Add(1)
			if d.down.Load() {
				return nil, &leasehold.Error{Code: leasehold.Unavailable, Message: "there is no leader"}
			}
			if p := d.newest.Load(); p != nil {
				return p, nil
			}
			return d.local.Load(), nil
		},
		Now:     func() time.Time { return *d.time.Load() },
		Refused: func(Reason) { d.refused.Add(1) },
		Log:     slog.New(slog.NewTextHandler(d.log, nil)),
	})
	return d
}

func (d *desk) set(items access.Items) { d.local.Store(d.local.Load().With(access.Keys{}, items)) }

func (d *desk) remove(keys access.Keys) { d.local.Store(d.local.Load().With(keys, access.Items{})) }

func (d *desk) now() time.Time { return *d.time.Load() }

func (d *desk) pass(by time.Duration) {
	now := d.now().Add(by)
	d.time.Store(&now)
}

// good checks a credential that has to be good.
func (d *desk) good(s Shown) *Proof {
	d.t.Helper()
	p, err := d.Check(d.t.Context(), s)
	if err != nil || p == nil {
		d.t.Fatalf("it is refused: %v", err)
	}
	return p
}

// bad checks a credential that has to be refused for a reason, without a word of the secret.
func (d *desk) bad(s Shown, why Reason) {
	d.t.Helper()
	before := d.refused.Load()
	p, err := d.Check(d.t.Context(), s)
	if d.refused.Load() != before+1 {
		d.t.Error("the refusal is not counted")
	}
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != why || p != nil {
		d.t.Errorf("it is answered %v, %v, want %s", p, err, why)
		return
	}
	for part := range strings.SplitSeq(s.Secret, ".") {
		if len(part) > 8 && strings.Contains(err.Error(), part) {
			d.t.Errorf("the refusal has a part of the secret: %v", err)
		}
	}
}

func newToken(id, principal string, groups ...string) (secret string, t *access.Token) {
	secret, hash := NewToken()
	return secret, &access.Token{ID: id, Hash: hash, Principal: principal, Groups: groups}
}

func bindTo(groups ...string) (all []*access.Binding) {
	for i, g := range groups {
		all = append(all, &access.Binding{Name: fmt.Sprint("b", i), Role: "member", Group: g, Namespace: "default"})
	}
	return all
}

func TestTokens(t *testing.T) {
	secret, token := newToken("t1", "ann", "team", "unbound")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}, Bindings: bindTo("team")})
	p := d.good(Shown{Secret: secret})
	if a := p.Asker; a.Principal != "ann" || a.Token != "t1" || !slices.Equal(a.Groups, []string{"team"}) {
		t.Errorf("the asker is %+v", a)
	}
	if d.good(Shown{Secret: secret}) != p {
		t.Error("it is judged again")
	}
	if !strings.HasPrefix(secret, "lh_") || len(secret) != 46 || len(token.Hash) != 32 {
		t.Errorf("the token has the form %d, %d", len(secret), len(token.Hash))
	}
	d.bad(Shown{}, Missing)
	d.bad(Shown{Secret: secret[:45]}, Malformed)
	d.bad(Shown{Secret: token.Hash}, Malformed)
	other, _ := NewToken()
	d.bad(Shown{Secret: other}, Unknown)
	d.bad(Shown{Secret: "lh_" + strings.Repeat("=", 43)}, Unknown)

	d.remove(access.Keys{Tokens: []string{"t1"}})
	d.bad(Shown{Secret: secret}, Unknown)
	d.local.Store(nil)
	if p, err := d.Check(t.Context(), Shown{Secret: secret}); p != nil || err != nil {
		t.Errorf("access is off, and the answer is %v, %v", p, err)
	}
}

func TestTokensExpireByTheClockOfTheDoor(t *testing.T) {
	secret, token := newToken("t1", "ann")
	d := newDesk(t, access.Items{})
	token.ExpiresWall = d.now().Add(time.Minute).UnixNano()
	d.set(access.Items{Tokens: []*access.Token{token}})
	if p := d.good(Shown{Secret: secret}); !p.Expires.Equal(d.now().Add(time.Minute)) {
		t.Errorf("it expires at %v", p.Expires)
	}
	d.pass(time.Minute - 1)
	d.good(Shown{Secret: secret})
	d.pass(1)
	d.bad(Shown{Secret: secret}, Expired)
	longer := *token
	longer.ExpiresWall = 0
	d.newest.Store(d.local.Load().With(access.Keys{}, access.Items{Tokens: []*access.Token{&longer}}))
	d.good(Shown{Secret: secret})
}

// A token that was made a moment ago on another server is not refused because this one has not heard of it.
func TestUnknownTokensAreLookedUpOnce(t *testing.T) {
	secret, token := newToken("t1", "ann")
	d := newDesk(t, access.Items{Bindings: bindTo("x")})
	d.newest.Store(d.local.Load().With(access.Keys{}, access.Items{Tokens: []*access.Token{token}}))
	d.good(Shown{Secret: secret})
	if n := d.reads.Load(); n != 1 {
		t.Errorf("the policy was read %d times", n)
	}
	other, _ := NewToken()
	d.bad(Shown{Secret: other}, Unknown)
	if n := d.reads.Load(); n != 2 {
		t.Errorf("the policy was read %d times", n)
	}
	d.down.Store(true)
	if _, err := d.Check(t.Context(), Shown{Secret: other}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("nobody can tell, and the answer is %v", err)
	}
}

// While one reading is under way, all who come share the next.
func TestManyUnknownTokensShareReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, goOn := 0, make(chan bool)
		p := &policies{
			read:  func(context.Context) (*access.Policy, error) { reads++; <-goOn; return nil, nil },
			index: func(*known, *access.Policy) *known { return &known{} },
		}
		done := make(chan error)
		for range 101 {
			go func() { _, err := p.fresh(t.Context()); done <- err }()
			synctest.Wait()
		}
		close(goOn)
		for range 101 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if reads != 2 {
			t.Errorf("101 requests caused %d readings", reads)
		}
	})
}

func TestGroupsFollowThePolicy(t *testing.T) {
	secret, token := newToken("t1", "ann", "a", "b")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}})
	if p := d.good(Shown{Secret: secret}); len(p.Asker.Groups) != 0 {
		t.Errorf("groups without bindings travel: %v", p.Asker.Groups)
	}
	d.set(access.Items{Bindings: bindTo("b")})
	if p := d.good(Shown{Secret: secret}); !slices.Equal(p.Asker.Groups, []string{"b"}) {
		t.Errorf("the groups are %v", p.Asker.Groups)
	}
}

func TestFailedLoginsAreSlowedDownByAddress(t *testing.T) {
	secret, token := newToken("t1", "ann")
	known, second := newToken("t2", "bob")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token, second}})
	here := func(secret string) Shown { return Shown{Secret: secret, From: "[2001:db8::1]:4711"} }
	d.good(here(known))
	for range failuresAtOnce {
		wrong, _ := NewToken()
		d.bad(here(wrong), Unknown)
	}
	wrong, _ := NewToken()
	reads := d.reads.Load()
	d.bad(here(wrong), Slowed)
	d.bad(Shown{Secret: wrong, From: "[2001:db8::ffff]:1"}, Slowed) // the same /64
	if d.reads.Load() != reads {
		t.Error("the policy is read for a login that is slowed down")
	}
	d.good(here(known))
	d.good(here(secret)) // a good one is not held up, known or not
	d.bad(Shown{Secret: wrong, From: "[2001:db8:0:1::1]:1"}, Unknown)
	d.bad(Shown{Secret: wrong, From: "192.0.2.1:1"}, Unknown)
	d.pass(failureEvery)
	d.bad(here(wrong), Unknown)
	d.bad(here(wrong), Slowed)
	d.pass(time.Hour)
	d.bad(here(wrong), Unknown)
}

func TestAddressesAreBounded(t *testing.T) {
	d := newDesk(t, access.Items{Bindings: bindTo("x")})
	wrong, _ := NewToken()
	for i := range maxAddresses + 100 {
		d.bad(Shown{Secret: wrong, From: fmt.Sprintf("10.%d.%d.1:1", i/256, i%256)}, Unknown)
	}
	if n := len(d.slow.addresses); n > maxAddresses {
		t.Errorf("%d addresses are kept", n)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	c := newCache(100)
	now := time.Now()
	for i := range 1000 {
		k := key{sum: [32]byte{byte(i), byte(i >> 8)}}
		c.put(k, &entry{proof: &Proof{}}, now)
		if c.get(&k) == nil {
			t.Fatal("what was put last is not there")
		}
	}
	if len(c.entries) > 100 {
		t.Errorf("%d are kept", len(c.entries))
	}
}

// What nobody shows any more is forgotten, and with it the policy by which it was judged.
func TestOldPoliciesAreForgotten(t *testing.T) {
	idle, first := newToken("t1", "ann")
	busy, second := newToken("t2", "bob")
	d := newDesk(t, access.Items{Tokens: []*access.Token{first, second}})
	d.good(Shown{Secret: idle})
	for _, g := range []string{"a", "b", "c"} {
		d.good(Shown{Secret: busy})
		d.set(access.Items{Bindings: bindTo(g)})
	}
	d.good(Shown{Secret: busy})
	if n := len(d.cache.entries); n != 1 {
		t.Errorf("%d credentials are remembered", n)
	}
	d.good(Shown{Secret: idle})
}

// What is not secret, shown as a secret, proves nothing.
func TestKindsOfCredentialsAreKeptApart(t *testing.T) {
	d := newDesk(t, access.Items{Bindings: bindTo("x")})
	if p := d.Account("store1"); p.Asker.Principal != "azure:store1" || d.Account("store1") != p {
		t.Errorf("the account is %+v", p)
	}
	d.bad(Shown{Secret: "store1"}, Malformed)
	d.local.Store(nil)
	if d.Account("store1") != nil {
		t.Error("access is off, and there is a proof")
	}
}

func TestTooManyGroupsAreRefused(t *testing.T) {
	var groups []string
	for i := range access.MaxGroups + 1 {
		groups = append(groups, fmt.Sprint("g", i))
	}
	secret, token := newToken("t1", "ann", groups...)
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}, Bindings: bindTo(groups...)})
	d.bad(Shown{Secret: secret}, Claims)
}

// When a token was used is told about once an hour, however often that is.
func TestUsesAreTold(t *testing.T) {
	secret, token := newToken("t1", "ann")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}})
	var told []access.Use
	firsts := 0
	d.config.Used = func(u access.Use, first bool) {
		told = append(told, u)
		if first {
			firsts++
		}
	}
	for range 5 {
		d.good(Shown{Secret: secret})
	}
	if len(told) != 1 || told[0] != (access.Use{ID: "t1", Wall: d.now().UnixNano()}) {
		t.Fatalf("it is told %v", told)
	}
	proof := d.good(Shown{Secret: secret})
	d.local.Store(d.local.Load().WithUses(told))
	d.pass(useEvery - 1)
	if d.good(Shown{Secret: secret}) != proof {
		t.Error("a credential is judged again since a token was used")
	}
	if len(told) != 1 {
		t.Errorf("it is told %v", told)
	}
	d.pass(1)
	d.good(Shown{Secret: secret})
	if len(told) != 2 || firsts != 1 {
		t.Errorf("it is told %v, %d as the first", told, firsts)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true},
		{"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abc", true}, {"a*c", "ac", true}, {"ab*bc", "abc", false},
		{"repo:org/*:ref:*", "repo:org/app:ref:main", true}, {"repo:org/*", "repo:organ/app", false},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "aXcYb", false}, {"**", "x", true}, {"a*b", "ab*", false},
	} {
		if got := access.Matches(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
}

func BenchmarkKnownToken(b *testing.B) {
	secret, token := newToken("t1", "ann")
	tokens := []*access.Token{token}
	for i := range 10000 {
		_, t := newToken(fmt.Sprint("x", i), "somebody")
		tokens = append(tokens, t)
	}
	var none *access.Policy
	p := none.With(access.Keys{}, access.Items{Tokens: tokens})
	l := New(Config{Local: func() *access.Policy { return p }})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Check(b.Context(), Shown{Secret: secret, From: "127.0.0.1:1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAKnownTokenAllocatesNothing(t *testing.T) {
	secret, token := newToken("t1", "ann")
	d := newDesk(t, access.Items{Tokens: []*access.Token{token}})
	ctx := t.Context()
	n := testing.AllocsPerRun(100, func() { _, _ = d.Check(ctx, Shown{Secret: secret, From: "127.0.0.1:1"}) })
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A caller that must not wait can ask first whether it would have to.
func TestKnows(t *testing.T) {
	secret, hash := NewToken()
	wrong, _ := NewToken()
	d := newDesk(t, access.Items{Tokens: []*access.Token{{ID: "t", Hash: hash, Principal: "ann"}}})
	good, bad := Shown{Secret: secret, From: "1.2.3.4:5"}, Shown{Secret: wrong, From: "1.2.3.4:5"}
	if d.Knows(good) || d.Knows(bad) || !d.Knows(Shown{}) {
		t.Error("it knows what nobody has shown yet")
	}
	d.good(good)
	d.bad(bad, Unknown)
	if !d.Knows(good) || d.Knows(bad) {
		t.Error("it does not remember what was good, or does what was not")
	}
	d.remove(access.Keys{Tokens: []string{"t"}})
	if d.Knows(good) {
		t.Error("it remembers what was revoked")
	}
}

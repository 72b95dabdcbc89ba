package credential

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold/internal/access/providertest"
	"github.com/leasehold/leasehold/internal/core/access"
)

type set = providertest.Set

func issued(name string, p *providertest.Provider) *access.Issuer {
	audiences := []string{"other", "leasehold"}
	return &access.Issuer{Name: name, URL: p.URL(), Audiences: audiences, Groups: []access.ClaimRule{
		{Claim: "repository", Value: "org/*", Group: "builders"},
		{Claim: "groups", Value: "ops", Group: "operators"},
		{Claim: "groups", Value: "none", Group: "nobody"},
	}}
}

// newOffice returns a login that believes a provider, and one of its keys.
func newOffice(t testing.TB) (*desk, *providertest.Provider, string) {
	p := providertest.Start(t)
	d := newDesk(t, access.Items{Issuers: []*access.Issuer{issued("ci", p)},
		Bindings: bindTo("builders", "operators", "nobody", "claim:ci:repository=org/app", "claim:ci:groups=qa")})
	return d, p, p.Add(jose.RS256)
}

func TestJWTs(t *testing.T) {
	for _, a := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA, jose.PS384} {
		t.Run(string(a), func(t *testing.T) {
			d, p, _ := newOffice(t)
			jwt := p.Sign(p.Add(a), p.Claims(d.now(), nil))
			got := d.good(Shown{Secret: jwt})
			want := []string{"builders", "claim:ci:repository=org/app", "operators"}
			if a := got.Asker; a.Principal != "ci:repo:org/app" || a.Token != "" || !slices.Equal(a.Groups, want) {
				t.Errorf("the asker is %+v", a)
			}
			if !got.Expires.Equal(d.now().Add(time.Hour)) || got.Kind != JWT {
				t.Errorf("it is %+v", got)
			}
			if d.good(Shown{Secret: jwt}) != got || p.Fetches.Load() != 1 {
				t.Errorf("it is verified again, or the keys were fetched %d times", p.Fetches.Load())
			}
			d.pass(time.Hour - 1)
			d.good(Shown{Secret: jwt})
			d.pass(1)
			d.bad(Shown{Secret: jwt}, Expired)
		})
	}
}

func TestJWTsAreRefused(t *testing.T) {
	d, p, kid := newOffice(t)
	for name, c := range map[string]struct {
		change set
		why    Reason
	}{
		"expired":               {set{"exp": d.now().Unix()}, Expired},
		"not yet":               {set{"nbf": d.now().Add(leeway + time.Second).Unix()}, NotYet},
		"issued in the future":  {set{"iat": d.now().Add(leeway + time.Second).Unix()}, NotYet},
		"for another audience":  {set{"aud": "somebody"}, Audience},
		"for other audiences":   {set{"aud": []string{"a", "b"}}, Audience},
		"for no audience":       {set{"aud": nil}, Audience},
		"by another issuer":     {set{"iss": "https://evil.example"}, Issuer},
		"by a longer issuer":    {set{"iss": p.URL() + "/"}, Issuer},
		"by nobody":             {set{"iss": nil}, Issuer},
		"about nobody":          {set{"sub": nil}, Claims},
		"about an empty name":   {set{"sub": ""}, Claims},
		"about two":             {set{"sub": []string{"a", "b"}}, Malformed},
		"about a control code":  {set{"sub": "a\nb"}, Claims},
		"about a long name":     {set{"sub": strings.Repeat("a", 1024)}, Claims},
		"without an end":        {set{"exp": nil}, Claims},
		"with a wrong end":      {set{"exp": "soon"}, Malformed},
		"with a negative end":   {set{"exp": -1}, Claims},
		"with many values":      {set{"many": make([]bool, maxValues)}, Claims},
		"with upper case names": {set{"exp": nil, "EXP": d.now().Add(time.Hour).Unix()}, Claims},
	} {
		t.Run(name, func(t *testing.T) {
			d.t = t
			d.bad(Shown{Secret: p.Sign(kid, p.Claims(d.now(), c.change)), From: name}, c.why)
			clear(d.slow.addresses)
		})
	}
	d.t = t
	d.good(Shown{Secret: p.Sign(kid, p.Claims(d.now(), set{"nbf": d.now().Add(leeway).Unix()}))})
	d.good(Shown{Secret: p.Sign(kid, p.Claims(d.now(), set{"aud": []string{"x", "leasehold"}}))})
	d.good(Shown{Secret: p.Sign(kid, p.Claims(d.now(), set{"exp": 1e300}))})
}

// forge makes a JWT by hand.
func forge(header, payload any, signature []byte) string {
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(header) + "." + part(payload) + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestJWTsThatNobodySignedAreRefused(t *testing.T) {
	d, p, kid := newOffice(t)
	claims := p.Claims(d.now(), nil)
	for _, none := range []string{"none", "None", "NONE", "nOnE", ""} {
		d.bad(Shown{Secret: forge(set{"alg": none, "typ": "JWT"}, claims, nil)}, Algorithm)
	}
	d.bad(Shown{Secret: forge(set{"alg": "RS256", "kid": kid}, claims, nil)}, Signature)
	d.bad(Shown{Secret: forge(set{"alg": "RS256", "kid": kid}, claims, make([]byte, 256))}, Signature)
	d.bad(Shown{Secret: forge(set{"alg": "ES256", "kid": kid}, claims, make([]byte, 64))}, Signature)
	d.bad(Shown{Secret: forge(set{"alg": "RS256", "kid": kid, "crit": []string{"exp"}}, claims, nil)}, Signature)

	good := p.Sign(kid, claims)
	parts := strings.Split(good, ".")
	other := strings.Split(p.Sign(kid, p.Claims(d.now(), set{"sub": "root"})), ".")
	d.bad(Shown{Secret: parts[0] + "." + other[1] + "." + parts[2]}, Signature)
	d.bad(Shown{Secret: strings.Join(parts[:2], ".") + "."}, Signature)
	d.bad(Shown{Secret: strings.Join(parts[:2], ".")}, Malformed)
	d.bad(Shown{Secret: good + ".x"}, Malformed)
	d.bad(Shown{Secret: good[1:]}, Malformed)
	clear(d.slow.addresses)
	d.bad(Shown{Secret: p.Sign(kid, p.Claims(d.now(), set{"pad": strings.Repeat("x", maxJWT)}))}, Malformed)
	d.bad(Shown{Secret: "."}, Malformed)
	d.bad(Shown{Secret: ".."}, Malformed)
	d.bad(Shown{Secret: `{"payload":"e30","signatures":[]}`}, Malformed)
	d.good(Shown{Secret: good})
}

// The public key is no secret: who signs by HS256 with it has proven nothing.
func TestAlgorithmConfusionIsRefused(t *testing.T) {
	d, p, kid := newOffice(t)
	private, _ := providertest.RSAKey()
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), der, []byte(p.JWKS()),
	} {
		key := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: kid}}
		d.bad(Shown{Secret: providertest.Sign(t, key, p.Claims(d.now(), nil))}, Algorithm)
	}
	// Nor does a key help that came with the JWT.
	own := providertest.Start(t)
	signer, err := jose.NewSigner(own.Key(own.Add(jose.ES256)), &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(p.Claims(d.now(), nil))
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := signed.CompactSerialize()
	d.bad(Shown{Secret: text}, Signature)
}

// A key of one issuer does not speak for another, whatever its id.
func TestKeyConfusionIsRefused(t *testing.T) {
	d, p, _ := newOffice(t)
	evil := providertest.Start(t)
	evil.Add(jose.ES256) // key1, as p has
	d.set(access.Items{Issuers: []*access.Issuer{issued("evil", evil)}})
	d.good(Shown{Secret: evil.Sign("key1", evil.Claims(d.now(), nil))})
	d.bad(Shown{Secret: evil.Sign("key1", evil.Claims(d.now(), set{"iss": p.URL()}))}, Signature)
	second := evil.Add(jose.EdDSA)
	d.bad(Shown{Secret: evil.Sign(second, evil.Claims(d.now(), set{"iss": p.URL()}))}, Signature)
	if got := d.good(Shown{Secret: p.Sign("key1", p.Claims(d.now(), nil))}).Asker.Principal; got != "ci:repo:org/app" {
		t.Errorf("it is %s", got)
	}
}

func TestKeysRotate(t *testing.T) {
	d, p, first := newOffice(t)
	old := p.Sign(first, p.Claims(d.now(), nil))
	d.good(Shown{Secret: old})
	second := p.Add(jose.ES256)
	fresh := p.Sign(second, p.Claims(d.now(), nil))
	d.bad(Shown{Secret: fresh}, Signature) // the keys were fetched a moment ago
	if n := p.Fetches.Load(); n != 1 {
		t.Fatalf("the keys were fetched %d times", n)
	}
	d.pass(fetchPause)
	d.good(Shown{Secret: fresh})
	d.good(Shown{Secret: old})
	if n := p.Fetches.Load(); n != 2 {
		t.Errorf("the keys were fetched %d times", n)
	}
	for range 10 {
		d.bad(Shown{Secret: p.Sign(first, p.Claims(d.now(), nil))[:300] + ".x.y"}, Malformed)
		kid := fmt.Sprint("unknown", time.Now().UnixNano())
		key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{
			Key: p.Key(second).Key.(jose.JSONWebKey).Key.(crypto.Signer), KeyID: kid}}
		d.bad(Shown{Secret: providertest.Sign(t, key, p.Claims(d.now(), nil)), From: kid}, Signature)
		clear(d.slow.addresses)
	}
	if n := p.Fetches.Load(); n != 2 {
		t.Errorf("unknown keys let the keys be fetched: %d times", n)
	}

	// What was signed by a key that the issuer took back ends when that is known, although it was verified before.
	p.Drop(first)
	d.pass(renewEvery + 1)
	d.good(Shown{Secret: old}) // nobody waits for the keys
	for p.Fetches.Load() < 3 || d.policies.here().issuers[p.URL()][0].keys.(*remote).flying() {
		time.Sleep(time.Millisecond)
	}
	d.bad(Shown{Secret: old}, Signature)
	d.good(Shown{Secret: fresh})
}

func (r *remote) flying() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flight != nil
}

// An issuer that is down takes nobody with it, and is not asked more and more often.
func TestAnIssuerThatIsDown(t *testing.T) {
	d, p, kid := newOffice(t)
	secret, token := newToken("t1", "ann")
	other := providertest.Start(t)
	otherKey := other.Add(jose.EdDSA)
	d.set(access.Items{Tokens: []*access.Token{token}, Issuers: []*access.Issuer{issued("other", other)}})
	p.Down.Store(true)
	jwt := p.Sign(kid, p.Claims(d.now(), nil))
	d.bad(Shown{Secret: jwt}, Unreachable)
	for range 50 {
		d.bad(Shown{Secret: jwt}, Unreachable)
	}
	if n := p.Discoveries.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	d.good(Shown{Secret: secret})
	d.good(Shown{Secret: other.Sign(otherKey, other.Claims(d.now(), nil))})
	d.pass(firstPause)
	d.bad(Shown{Secret: jwt}, Unreachable)
	d.pass(firstPause)
	d.bad(Shown{Secret: jwt}, Unreachable)
	if n := p.Discoveries.Load(); n != 2 {
		t.Errorf("it was asked %d times: the pause has to grow", n)
	}
	p.Down.Store(false)
	d.pass(firstPause)
	d.good(Shown{Secret: jwt})
	if log := d.log.String(); !strings.Contains(log, "503") || strings.Contains(log, jwt[:20]) {
		t.Errorf("the log is %s", log)
	}

	// One that goes down later is believed for a day.
	p.Down.Store(true)
	d.pass(23 * time.Hour)
	d.good(Shown{Secret: p.Sign(kid, p.Claims(d.now(), nil))})
	d.pass(2 * time.Hour)
	d.bad(Shown{Secret: p.Sign(kid, p.Claims(d.now(), nil))}, Unreachable)
}

// A slow issuer holds up those who show its JWTs, and nobody else.
func TestAnIssuerThatIsSlow(t *testing.T) {
	d, p, kid := newOffice(t)
	secret, token := newToken("t1", "ann")
	d.set(access.Items{Tokens: []*access.Token{token}})
	p.Hang = make(chan struct{})
	jwt := p.Sign(kid, p.Claims(d.now(), nil))
	done := make(chan error)
	const many = 100
	for i := range many {
		go func() {
			_, err := d.Login.Check(t.Context(), Shown{Secret: jwt, From: fmt.Sprintf("10.0.0.%d:1", i)})
			done <- err
		}()
	}
	refused := 0
	for range many - maxAwaiting { // there is no room for all to wait
		if err := <-done; err != nil {
			refused++
		}
	}
	d.good(Shown{Secret: secret})
	close(p.Hang)
	for range maxAwaiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if refused != many-maxAwaiting || p.Discoveries.Load() != 1 {
		t.Errorf("%d were refused, and it was asked %d times", refused, p.Discoveries.Load())
	}
}

// A site without a way out gives the keys itself.
func TestKeysInThePolicy(t *testing.T) {
	p := providertest.Start(t)
	kid := p.Add(jose.ES256)
	i := issued("ci", p)
	i.URL, i.Keys, i.Principal = "https://kubernetes.default.svc", p.JWKS(), "repository"
	d := newDesk(t, access.Items{Issuers: []*access.Issuer{i}})
	jwt := p.Sign(kid, p.Claims(d.now(), set{"iss": i.URL}))
	if got := d.good(Shown{Secret: jwt}).Asker.Principal; got != "ci:org/app" {
		t.Errorf("it is %s", got)
	}
	if p.Discoveries.Load()+p.Fetches.Load() != 0 {
		t.Error("the issuer was asked")
	}
	changed := *i
	p.Add(jose.EdDSA)
	p.Drop(kid)
	changed.Keys = p.JWKS()
	d.set(access.Items{Issuers: []*access.Issuer{&changed}})
	d.bad(Shown{Secret: jwt}, Signature)
	d.remove(access.Keys{Issuers: []string{"ci"}})
	d.bad(Shown{Secret: jwt}, Issuer)
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":   ``,
		"none":      `{"keys":[]}`,
		"symmetric": `{"keys":[{"kty":"oct","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0","alg":"HS256"}]}`,
		"short":     `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("A", 100) + `"}]}`,
		"unknown":   `{"keys":[{"kty":"new"}]}`,
	} {
		if _, err := parseKeys(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	p := providertest.Start(t)
	p.Add(jose.ES256)
	mixed := strings.Replace(p.JWKS(), `{"keys":[`, `{"keys":[{"kty":"new"},{"kty":"oct","k":"AAAA"},`, 1)
	if set, err := parseKeys(mixed); err != nil || len(set.keys) != 1 {
		t.Errorf("one good key among others: %v", err)
	}
}

// Keys come over TLS, or from this machine.
func TestIssuersAreAskedSafely(t *testing.T) {
	d := newDesk(t, access.Items{})
	for _, url := range []string{"http://issuer.example", "ftp://127.0.0.1", "http://127.0.0.1.example"} {
		if _, err := d.client.Get(url); err == nil || !strings.Contains(err.Error(), "use https") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func BenchmarkKnownJWT(b *testing.B) {
	d, p, kid := newOffice(b)
	shown := Shown{Secret: p.Sign(kid, p.Claims(d.now(), nil)), From: "127.0.0.1:1"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Check(b.Context(), shown); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzCredential(f *testing.F) {
	f.Add("lh_" + strings.Repeat("A", 43))
	f.Add(forge(set{"alg": "RS256"}, set{"iss": "https://a"}, []byte("x")))
	f.Add(forge(set{"alg": "none"}, set{"iss": "https://a"}, nil))
	f.Add("a.b.c")
	f.Add("..")
	var none *access.Policy
	policy := none.With(access.Keys{}, access.Items{Issuers: []*access.Issuer{
		{Name: "a", URL: "https://a", Audiences: []string{"x"}, Keys: `{"keys":[]}`}}})
	now := time.Now()
	f.Fuzz(func(t *testing.T, secret string) {
		l := New(Config{Local: func() *access.Policy { return policy }, Now: func() time.Time { return now }})
		l.policies.read = nil
		if e, err := l.judge(t.Context(), &Shown{Secret: secret, Certificate: &x509.Certificate{}},
			l.policies.here()); err == nil {
			t.Errorf("%q is taken for %+v", secret, e.proof.Asker)
		}
		if c, err := readClaims([]byte(secret)); err == nil {
			if ends, err := c.check(policy.Issuers()[0], now); err == nil && !ends.After(now) {
				t.Errorf("%q ends at %v", secret, ends)
			}
		}
		_, _ = parseKeys(secret)
	})
}

// Who has a JWT that its issuer has signed does not guess, whatever others at the same address do: behind a proxy or on
// one machine that is everybody. It is judged by the keys that are known, at a bounded cost.
func TestSignedJWTsAreNotSlowedDown(t *testing.T) {
	d, p, kid := newOffice(t)
	here := func(secret string) Shown { return Shown{Secret: secret, From: "192.0.2.1:1234"} }
	sign := func(claims map[string]any) Shown { return here(p.Sign(kid, p.Claims(d.now(), claims))) }
	d.good(sign(nil))
	for range failuresAtOnce {
		d.bad(here("rubbish"), Malformed)
	}
	d.bad(here("rubbish"), Slowed)
	fetches := p.Fetches.Load()
	d.good(sign(map[string]any{"sub": "another"}))
	d.bad(sign(map[string]any{"aud": "somebody else"}), Slowed)
	d.bad(here(p.Sign(p.Add(jose.ES256), p.Claims(d.now(), nil))), Slowed)
	if p.Fetches.Load() != fetches {
		t.Error("the keys are fetched for an address that is slowed down")
	}
	for range cap(d.verifying) {
		d.verifying <- struct{}{}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := d.Check(ctx, sign(map[string]any{"sub": "third"})); err == nil {
		t.Error("more are verified at a time than may be")
	}
}

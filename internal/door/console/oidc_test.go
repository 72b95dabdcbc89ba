package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/access/providertest"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
)

// clients are what the consoles of all tests are to issuers.
var clients = map[string]credential.Client{
	"corp":  {ID: providertest.ClientID, Scopes: []string{"openid"}},
	"other": {ID: providertest.ClientID, Secret: "a:b c%", Scopes: []string{"openid"}},
	"gone":  {ID: providertest.ClientID, Scopes: []string{"openid"}},
}

func provide(t testing.TB) *providertest.Provider {
	p := providertest.Start(t)
	p.Add(jose.ES256)
	p.Sessions.Life = 20 * time.Minute
	return p
}

// trust makes a server believe in providers, as corp and other.
func trust(t testing.TB, providers ...*providertest.Provider) *governed {
	t.Helper()
	g := govern(t)
	var all access.Items
	for i, p := range providers {
		all.Issuers = append(all.Issuers, &access.Issuer{Name: []string{"corp", "other"}[i], URL: p.URL(),
			Audiences: []string{"leases", providertest.ClientID}})
	}
	all.Bindings = []*access.Binding{{Name: "people", Role: "viewer", Principal: "corp:ann", Namespace: "default"}}
	g.change(&core.ChangeAccess{Put: all})
	return g
}

// leave begins a sign-in, and returns where the browser is sent to and the cookie that it gets.
func (g *governed) leave(issuer, to string, headers ...string) (*url.URL, *http.Cookie) {
	g.t.Helper()
	body, _ := json.Marshal(map[string]string{"issuer": issuer, "to": to})
	headers = append([]string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}, headers...)
	a := g.expect(g.ask("POST", oidcPath, string(body), headers...), 200)
	var sent struct{ Location string }
	if err := json.Unmarshal([]byte(a.body), &sent); err != nil || len(a.Cookies()) != 1 {
		g.t.Fatalf("%v, with %v", err, a.Cookies())
	}
	u, err := url.Parse(sent.Location)
	if err != nil {
		g.t.Fatal(err)
	}
	return u, a.Cookies()[0]
}

// visit lets the person sign in at the issuer, and returns where the browser is sent back to.
func (g *governed) visit(at *url.URL) *url.URL {
	g.t.Helper()
	r, _ := http.NewRequest("GET", at.String(), nil)
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		g.t.Fatal(err)
	}
	a.Body.Close()
	back, err := a.Location()
	if err != nil {
		g.t.Fatalf("the issuer answers %s: %v", a.Status, err)
	}
	return back
}

// back sends the browser back, as browsers do that come from another site.
func (g *governed) back(to *url.URL, cookie string) got {
	g.t.Helper()
	return g.ask("GET", to.RequestURI(), "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
}

// session returns the cookie by which an answer signs somebody in, or nil.
func signedInBy(a got) *http.Cookie {
	for _, c := range a.Cookies() {
		if strings.HasSuffix(c.Name, "leasehold_session") && c.MaxAge > 0 {
			return c
		}
	}
	return nil
}

// fails expects that nobody is signed in, and that the page is told why.
func (g *governed) fails(a got, why string) {
	g.t.Helper()
	to, err := a.Location()
	if a.StatusCode != 303 || err != nil || to.Path != "/signin" || to.Query().Get("failed") != why {
		g.t.Errorf("the answer is %s, to %v, want that it failed for %s", a.Status, to, why)
	}
	if c := signedInBy(a); c != nil {
		g.t.Errorf("somebody is signed in by %v", c)
	}
}

func TestSignInWithAnIssuer(t *testing.T) {
	p := provide(t)
	p.Person.Claims = providertest.Set{"sub": "ann"}
	g := trust(t, p)
	if s := g.who(); len(s.Issuers) != 1 || s.Issuers[0].Name != "corp" {
		t.Errorf("people can sign in with %v", s.Issuers)
	}
	at, c := g.leave("corp", "/audit?verb=break")
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 600 || c.Secure {
		t.Errorf("the cookie of the visit is %v", c)
	}
	if q := at.Query(); q.Get("redirect_uri") != g.URL+"/console/oidc/corp" || q.Get("scope") != "openid" {
		t.Errorf("the issuer is asked %v", q)
	}
	a := g.back(g.visit(at), sent(c))
	if to := a.Header.Get("Location"); a.StatusCode != 303 || to != "/audit?verb=break" {
		t.Fatalf("the answer is %s, to %s", a.Status, to)
	}
	s := signedInBy(a)
	if s == nil || !s.HttpOnly || s.SameSite != http.SameSiteStrictMode || s.MaxAge > 1200 || s.MaxAge < 1190 {
		t.Fatalf("the session's cookie is %v", s)
	}
	who := g.who("Cookie", sent(s), "Sec-Fetch-Site", "same-origin")
	if who.Principal != "corp:ann" || who.Credential != "jwt" || who.Until == nil || time.Until(*who.Until) > 20*time.Minute {
		t.Errorf("the session is %+v", who)
	}
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(s), "Sec-Fetch-Site", "same-origin"), 200)

	g.set(time.Now().Add(20*time.Minute + time.Second)) // it ends with the ID token
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(s)), 401)
}

// The code, the state and the cookie are good once, in the browser that began.
func TestSignInsThatAreNotThisBrowsers(t *testing.T) {
	p := provide(t)
	p.Person.Claims = providertest.Set{"sub": "ann"}
	g := trust(t, p)
	at, c := g.leave("corp", "/")
	_, another := g.leave("corp", "/")
	back := g.visit(at)
	g.fails(g.back(back, ""), failedVisit)
	g.fails(g.back(back, sent(another)), failedVisit) // somebody else's link, opened here
	g.fails(g.back(back, sent(c)+"; "+sent(c)), failedVisit)
	wrong := *back
	q := wrong.Query()
	q.Set("state", q.Get("state")+"x")
	wrong.RawQuery = q.Encode()
	g.fails(g.back(&wrong, sent(c)), failedVisit)
	q.Del("state")
	wrong.RawQuery = q.Encode()
	g.fails(g.back(&wrong, sent(c)), failedVisit)
	for _, value := range []string{"x", "e30", base64.RawURLEncoding.EncodeToString([]byte(`{"secret":"eA=="}`)), "[]"} {
		g.fails(g.back(back, c.Name+"="+value), failedVisit)
	}
	if p.Redeemed.Load() != 0 {
		t.Errorf("%d codes were redeemed", p.Redeemed.Load())
	}
	first := g.back(back, sent(c))
	if signedInBy(first) == nil {
		t.Fatalf("the answer is %s to %s", first.Status, first.Header.Get("Location"))
	}
	taken := false
	for _, one := range first.Cookies() {
		taken = taken || one.Name == c.Name && one.MaxAge < 0
	}
	if !taken {
		t.Errorf("the browser keeps the cookie of the visit: %v", first.Cookies())
	}
	g.fails(g.back(back, sent(c)), failedVisit) // a code is good once
	g.expect(g.ask("HEAD", back.RequestURI(), "", "Cookie", sent(c)), 405)

	at, c = g.leave("corp", "/")
	back = g.visit(at)
	g.set(time.Now().Add(visitTime + time.Second))
	g.fails(g.back(back, sent(c)), failedVisit)
}

// An ID token counts only if it is the answer to this sign-in, by this issuer, for this client.
func TestIDTokensOfSomethingElse(t *testing.T) {
	p, stranger := provide(t), provide(t)
	g := trust(t, p, stranger)
	for name, claims := range map[string]providertest.Set{
		failedVisit + " by its nonce":     {"nonce": "another"},
		failedVisit + " without a nonce":  {"nonce": nil},
		failedProof + " with two nonces":  {"nonce": []string{"a", "b"}},
		failedProof + " by its issuer":    {"iss": stranger.URL()}, // signed by a key that is not that issuer's
		failedProof + " of nobody's":      {"iss": "https://nobody.example"},
		failedProof + " by its audience":  {"aud": "leases"}, // believed here, but another client's
		failedProof + " by its party":     {"aud": []string{"leases", providertest.ClientID}, "azp": "leases"},
		failedProof + " for it has ended": {"exp": time.Now().Add(-time.Minute).Unix()},
		failedProof + " for it is nobody": {"sub": ""},
		failedTooLong + " for it is long": {"more": strings.Repeat("x", 4000)},
	} {
		p.Person.Claims = claims
		at, c := g.leave("corp", "/")
		why, _, _ := strings.Cut(name, " ")
		t.Log(name)
		g.fails(g.back(g.visit(at), sent(c)), why)
	}
	g.expect(g.ask("GET", "/v1/audit?verb=login", "", "Authorization", "Bearer "+g.root), 200, `"door":"console"`)
}

// A browser that was sent to one issuer, and comes back from another one, brings a code that is not for the first. Each
// has its own address to come back to, also where it does not say who it is.
func TestIssuersAreNotMixedUp(t *testing.T) {
	for _, nameless := range []bool{false, true} {
		honest, attacker := provide(t), provide(t)
		honest.Nameless, attacker.Nameless = nameless, nameless
		g := trust(t, honest, attacker)
		at, c := g.leave("other", "/") // the attacker's, who sends the browser on to the honest one
		onward, _ := url.Parse(honest.URL())
		onward.Path = at.Path
		q := at.Query()
		q.Set("redirect_uri", g.URL+oidcPath+"/corp") // that the honest one knows
		onward.RawQuery = q.Encode()
		g.fails(g.back(g.visit(onward), sent(c)), failedVisit)

		back := g.visit(onward)
		back.Path = oidcPath + "/other" // if it came back to the attacker's address all the same
		a := g.back(back, sent(c))
		if nameless {
			g.fails(a, failedVisit) // the attacker does not know the code
		} else {
			g.fails(a, failedProof)
			if attacker.Redeemed.Load() != 0 {
				t.Error("the attacker was told the code of the honest issuer")
			}
		}
	}
}

func TestWhereASignInLeadsTo(t *testing.T) {
	p := provide(t)
	p.Person.Claims = providertest.Set{"sub": "ann"}
	g := trust(t, p)
	for to, want := range map[string]string{
		"":                               "/",
		"/timeline?by=holder#x":          "/timeline?by=holder#x",
		"//evil.example/":                "/",
		"/\\evil.example":                "/",
		"\\\\evil.example":               "/",
		"https://evil.example/":          "/",
		"javascript:alert(1)":            "/",
		"evil.example":                   "/",
		"/\t/evil.example":               "/",
		"/a\r\nSet-Cookie: x=y":          "/",
		"/" + strings.Repeat("x", maxTo): "/",
	} {
		at, c := g.leave("corp", to)
		if got := g.back(g.visit(at), sent(c)).Header.Get("Location"); got != want {
			t.Errorf("after a sign-in to %q the browser is sent to %q, want %q", to, got, want)
		}
	}
	// What is in the cookie is not believed either.
	v := visit{Issuer: "corp", Redirect: g.URL + "/console/oidc/corp", To: "//evil.example", Secret: make([]byte, 32),
		Until: time.Now().Add(time.Minute).Unix()}
	a := g.ask("GET", oidcPath+"/corp?error=x&state="+v.derive("state"), "", "Cookie", sent(v.cookie(time.Minute)))
	g.fails(a, failedPerson)
	if to, _ := a.Location(); to.Query().Get("to") != "/" {
		t.Errorf("the page is told to go to %v", to)
	}
}

func TestPeopleWhomTheIssuerDoesNotLetIn(t *testing.T) {
	p := provide(t)
	p.Person.Denies = true
	g := trust(t, p)
	at, c := g.leave("corp", "/pools")
	a := g.back(g.visit(at), sent(c))
	g.fails(a, failedPerson)
	if to, _ := a.Location(); to.Query().Get("to") != "/pools" {
		t.Errorf("the page is told to go to %v", to)
	}
}

func TestIssuersThatCannotBeUsed(t *testing.T) {
	p := provide(t)
	g := trust(t, p)
	post := func(body string, headers ...string) got {
		return g.ask("POST", oidcPath, body, append([]string{"Content-Type", "application/json"}, headers...)...)
	}
	g.expect(post(`{"issuer":"nobody"}`), 400, "console-sign-in")
	g.expect(post(`{"issuer":"gone"}`), 401, "leasehold access issuer set") // the rules do not name it
	g.expect(post(`{"issuer":"corp"}`, "Sec-Fetch-Site", "cross-site"), 403)
	g.expect(g.ask("POST", oidcPath, `{}`, "Content-Type", "text/plain"), 415)
	g.expect(g.ask("GET", oidcPath, ""), 405)
	g.change(&core.ChangeAccess{Put: access.Items{Issuers: []*access.Issuer{
		{Name: "corp", URL: p.URL(), Audiences: []string{"leases"}},
		{Name: "other", URL: p.URL(), Audiences: []string{providertest.ClientID}, Keys: p.JWKS()},
	}}})
	g.expect(post(`{"issuer":"corp"}`), 401, "among its audiences")
	g.expect(post(`{"issuer":"other"}`), 401, "part of the rules")
	if s := g.who(); len(s.Issuers) != 0 {
		t.Errorf("people can sign in with %v", s.Issuers)
	}
	down := provide(t)
	down.Down.Store(true)
	g.change(&core.ChangeAccess{Put: access.Items{Issuers: []*access.Issuer{
		{Name: "corp", URL: down.URL(), Audiences: []string{providertest.ClientID}}}}})
	g.expect(post(`{"issuer":"corp"}`), 503, "cannot be asked")
}

// Failed sign-ins are slowed down as at every door, and the issuer is then not asked.
func TestFailedVisitsAreSlowedDown(t *testing.T) {
	p := provide(t)
	g := trust(t, p)
	p.Person.Claims = providertest.Set{"nonce": "another"}
	for range 40 {
		at, c := g.leave("corp", "/")
		a := g.back(g.visit(at), sent(c))
		if to, _ := a.Location(); to.Query().Get("failed") == failedSlowed {
			return
		}
	}
	t.Errorf("%d codes were redeemed, and none was refused", p.Redeemed.Load())
}

func TestSecretsOfClients(t *testing.T) {
	p, other := provide(t), provide(t)
	p.Secret, other.Secret = "needed", clients["other"].Secret
	g := trust(t, p, other)
	at, c := g.leave("corp", "/")
	g.fails(g.back(g.visit(at), sent(c)), failedVisit) // it has none
	at, c = g.leave("other", "/")
	if a := g.back(g.visit(at), sent(c)); signedInBy(a) == nil {
		t.Errorf("with the secret the browser is sent to %s", a.Header.Get("Location"))
	}
}

func TestSettingsOfClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("corp=s=1\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readClients(door.Settings{"console-sign-in": "corp=a, dex=b", "console-sign-in-secrets": file,
		"console-sign-in-scopes": "email groups"})
	if err != nil || len(got) != 2 || got["corp"].ID != "a" || got["corp"].Secret != "s=1" || got["dex"].Secret != "" ||
		strings.Join(got["dex"].Scopes, " ") != "openid email groups" {
		t.Errorf("the clients are %+v, %v", got, err)
	}
	for _, wrong := range []door.Settings{
		{"console-sign-in": "corp"}, {"console-sign-in": "corp="}, {"console-sign-in": "=x"},
		{"console-sign-in": "corp=a,corp=b"}, {"console-sign-in-secrets": file},
		{"console-sign-in": "corp=a", "console-sign-in-secrets": file + "x"},
	} {
		if _, err := readClients(wrong); err == nil || strings.Contains(err.Error(), "s=1") {
			t.Errorf("%v is answered by %v", wrong, err)
		}
	}
}

// Behind a proxy that speaks TLS, the issuer and the cookies are told so.
func TestVisitsBehindTLS(t *testing.T) {
	p := provide(t)
	p.Person.Claims = providertest.Set{"sub": "ann"}
	g := trust(t, p)
	at, c := g.leave("corp", "/", "Origin", "https"+strings.TrimPrefix(g.URL, "http"))
	if c.Name != "__Host-leasehold_visit" || !c.Secure ||
		!strings.HasPrefix(at.Query().Get("redirect_uri"), "https://127.0.0.1:") {
		t.Fatalf("the cookie is %v, the issuer is asked %v", c, at.Query())
	}
	back := g.visit(at)
	g.fails(g.back(back, door.VisitCookie+"="+c.Value), failedVisit) // anybody could have set that one
	if s := signedInBy(g.back(back, sent(c))); s == nil || s.Name != "__Host-leasehold_session" || !s.Secure {
		t.Errorf("the session's cookie is %v", s)
	}
}

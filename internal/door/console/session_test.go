package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// A governed server has rules: root may do everything, ann reads and holds below a/.
type governed struct {
	*server
	root, ann string
	now       atomic.Pointer[time.Time]
}

func govern(t testing.TB) *governed {
	t.Helper()
	g := &governed{}
	g.set(time.Now())
	g.server = start(t, door.Options{Now: func() time.Time { return *g.now.Load() }})
	token := func(name string, ends time.Time) (string, *access.Token) {
		secret, hash := credential.NewToken()
		return secret, &access.Token{ID: name + "1", Hash: hash, Principal: name, Groups: []string{"team"},
			ExpiresWall: ends.UnixNano()}
	}
	root, first := token("root", time.Now().Add(30*24*time.Hour))
	ann, second := token("ann", time.Now().Add(time.Hour))
	g.root, g.ann = root, ann
	g.change(&core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{first, second}, Bindings: []*access.Binding{
		{Name: "admins", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
		{Name: "a", Role: "member", Principal: "ann", Namespace: "default", Prefix: "a/"},
		{Name: "team", Role: "viewer", Group: "team", Namespace: "default", Prefix: "a/"},
	}}})
	return g
}

func (g *governed) set(now time.Time) { g.now.Store(&now) }

func (g *governed) change(c *core.ChangeAccess) {
	g.t.Helper()
	ctx := engine.WithAsker(context.Background(), &access.System)
	if _, err := g.engine.Do(ctx, c); err != nil {
		g.t.Fatal(err)
	}
}

// signIn signs in, and returns the cookie as a browser sends it.
func (g *governed) signIn(secret string, headers ...string) (got, *http.Cookie) {
	g.t.Helper()
	headers = append([]string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}, headers...)
	a := g.ask("POST", sessionPath, `{"token":"`+secret+`"}`, headers...)
	if cookies := a.Cookies(); len(cookies) == 1 {
		return a, cookies[0]
	}
	return a, nil
}

func sent(c *http.Cookie) string { return c.Name + "=" + c.Value }

func (g *governed) who(headers ...string) (s session) {
	g.t.Helper()
	a := g.expect(g.ask("GET", sessionPath, "", headers...), 200)
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		g.t.Fatal(err)
	}
	return s
}

func TestSignInAndOut(t *testing.T) {
	g := govern(t)
	if s := g.who(); !s.Access || s.Principal != "" || s.Problem != "" {
		t.Errorf("before anybody signs in the session is %+v", s)
	}
	a, c := g.signIn("  " + g.root + " ")
	g.expect(a, 200, `"principal":"root"`, `"groups":["team"]`, `"credential":"token"`)
	if c == nil || c.Name != "leasehold_session" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
		c.Domain != "" || c.Secure {
		t.Fatalf("the cookie is %v", c)
	}
	if c.MaxAge > int(longest.Seconds()) || c.MaxAge < int(longest.Seconds())-5 {
		t.Errorf("it lasts %d s", c.MaxAge)
	}
	if a.Header.Get("Cache-Control") != "no-store" || strings.Contains(a.body, g.root) {
		t.Errorf("the answer is %v %s", a.Header, a.body)
	}
	s := g.who("Cookie", sent(c), "Sec-Fetch-Site", "same-origin")
	if s.Principal != "root" || s.Until == nil || time.Until(*s.Until) > longest {
		t.Errorf("the session is %+v", s)
	}
	g.expect(g.ask("POST", "/v1/acquire", `{"resource":"b","holder":"h"}`, "Cookie", sent(c),
		"Sec-Fetch-Site", "same-origin"), 200)

	out := g.expect(g.ask("DELETE", sessionPath, "", "Cookie", sent(c), "Sec-Fetch-Site", "same-origin"), 204)
	if !slices.ContainsFunc(out.Cookies(), func(o *http.Cookie) bool { return o.Name == c.Name && o.MaxAge < 0 }) {
		t.Errorf("signed out, the browser is told %v", out.Header)
	}
}

// The cookie never outlives what it carries.
func TestTheCookieEndsWithItsCredential(t *testing.T) {
	g := govern(t)
	_, c := g.signIn(g.ann)
	if c == nil || c.MaxAge > 3600 || c.MaxAge < 3590 {
		t.Fatalf("the cookie is %v", c)
	}
	if s := g.who("Cookie", sent(c)); s.Principal != "ann" {
		t.Errorf("the session is %+v", s)
	}
	g.set(time.Now().Add(time.Hour + time.Second))
	if s := g.who("Cookie", sent(c)); s.Principal != "" {
		t.Errorf("an hour later the session is %+v", s)
	}
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c)), 401)

	g.set(time.Now())
	_, c = g.signIn(g.root)
	g.set(time.Now().Add(longest + time.Second))
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c)), 401)
	g.expect(g.ask("GET", "/v1/resources", "", "Authorization", "Bearer "+g.root), 200)
}

func TestARevokedCredential(t *testing.T) {
	g := govern(t)
	_, c := g.signIn(g.ann)
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c)), 200)
	g.change(&core.ChangeAccess{Remove: access.Keys{Tokens: []string{"ann1"}}})
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c)), 401, "revoked")
	a := g.expect(g.ask("GET", sessionPath, "", "Cookie", sent(c)), 200, `"access":true`, "revoked")
	if len(a.Cookies()) != 2 || a.Cookies()[0].MaxAge >= 0 {
		t.Errorf("the browser is told %v", a.Header)
	}
}

// What a program says in its header counts, whatever cookie it was given.
func TestABearerWins(t *testing.T) {
	g := govern(t)
	_, c := g.signIn(g.root)
	if s := g.who("Cookie", sent(c), "Authorization", "Bearer "+g.ann); s.Principal != "ann" {
		t.Errorf("the session is %+v", s)
	}
	wrong, _ := credential.NewToken()
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c), "Authorization", "Bearer "+wrong), 401)
}

func TestWrongSignIns(t *testing.T) {
	g := govern(t)
	wrong, _ := credential.NewToken()
	a, c := g.signIn(wrong)
	g.expect(a, 401, `"code":"denied"`, "revoked")
	if c != nil || strings.Contains(a.body, wrong) {
		t.Errorf("the answer is %v %s", c, a.body)
	}
	for range 30 {
		if a, _ = g.signIn(wrong); a.StatusCode != 401 {
			break
		}
	}
	g.expect(a, 429, `"code":"limited"`, "too many logins failed")
	if a, c := g.signIn(g.root); a.StatusCode != 200 || c == nil {
		t.Errorf("with a good token the answer is %s", a.body)
	}
	g.expect(g.ask("GET", "/v1/audit?verb=login", "", "Authorization", "Bearer "+g.root), 200, `"door":"console"`)
	post := func(kind, body string) got {
		return g.ask("POST", sessionPath, body, "Content-Type", kind)
	}
	g.expect(post("application/json", "{"), 400)
	g.expect(post("application/json", `{"token":""}`), 400, "token")
	g.expect(post("application/json", `{"token":"`+strings.Repeat("x", maxBody)+`"}`), 413)
	g.expect(post("text/plain", `{"token":"`+g.root+`"}`), 415)
	g.expect(g.ask("PUT", sessionPath, ""), 405)
}

func TestSignInWithoutAccess(t *testing.T) {
	s := start(t, door.Options{})
	s.expect(s.ask("GET", sessionPath, ""), 200, `{"access":false}`)
	a := s.expect(s.ask("POST", sessionPath, `{"token":"lh_x"}`, "Content-Type", "application/json"), 200, `{"access":false}`)
	if len(a.Cookies()) != 0 {
		t.Errorf("the browser is given %v", a.Cookies())
	}
}

// A page of another site can make a browser send requests. Those that would change something are refused, whether or not
// there are rules: without them, everybody on the machine may do everything, and that is who the browser is.
func TestOtherSites(t *testing.T) {
	open := start(t, door.Options{})
	g := govern(t)
	_, c := g.signIn(g.root)
	for _, from := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		for _, ask := range []struct{ method, path, body string }{
			{"POST", "/v1/break", `{"id":"x","reason":"r"}`},
			{"POST", "/v1/acquire", `{"resource":"r","holder":"h"}`},
			{"PUT", "/v1/records/r", "x"},
			{"POST", "/terraform/state", `{}`},
			{"DELETE", "/terraform/state", ""},
			{"POST", sessionPath, `{"token":"` + g.ann + `"}`},
			{"DELETE", sessionPath, ""},
		} {
			headers := append([]string{"Content-Type", "text/plain"}, from...)
			open.expect(open.ask(ask.method, ask.path, ask.body, headers...), 403, "another site")
			g.expect(g.ask(ask.method, ask.path, ask.body, append(headers, "Cookie", sent(c))...), 403)
		}
	}
	// Reading goes unanswered for pages on other ports of the same host, to which browsers send the cookie too.
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c), "Sec-Fetch-Site", "same-site"), 401)
	g.expect(g.ask("GET", "/v1/watch", "", "Cookie", sent(c), "Origin", "http://127.0.0.1:1"), 401)
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c), "Sec-Fetch-Site", "none"), 200)
	g.expect(g.ask("POST", "/v1/acquire", `{"resource":"r","holder":"h"}`, "Cookie", sent(c)), 401) // no browser does
	g.expect(g.ask("POST", "/v1/acquire", `{"resource":"r","holder":"h"}`, "Cookie", sent(c), "Origin", g.URL), 200)
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c)+"; "+sent(c)), 401) // one may be planted
	g.expect(g.ask("GET", "/terraform/state", "", "Cookie", sent(c), "Sec-Fetch-Site", "same-origin"), 401)
}

// Behind TLS the cookie has a name that nobody else can set.
func TestCookiesUnderTLS(t *testing.T) {
	g := govern(t)
	secureServer := httptest.NewTLSServer(g.Config.Handler)
	defer secureServer.Close()
	plain := g.URL
	g.URL = secureServer.URL
	client := secureServer.Client()
	ask := func(method, cookie, body string) *http.Response {
		t.Helper()
		r, _ := http.NewRequest(method, secureServer.URL+sessionPath, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Cookie", cookie)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	cookies := ask("POST", "", `{"token":"`+g.root+`"}`).Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-leasehold_session" || !cookies[0].Secure || cookies[0].Path != "/" {
		t.Fatalf("the cookies are %v", cookies)
	}
	r, _ := http.NewRequest("GET", secureServer.URL+"/v1/resources", nil)
	for cookie, want := range map[string]int{sent(cookies[0]): 200, "leasehold_session=" + cookies[0].Value: 401} {
		r.Header.Set("Cookie", cookie)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("with %s… the answer is %s", cookie[:20], answer.Status)
		}
	}
	g.URL = plain // a proxy in front speaks TLS, and says so by the origin
	a, c := g.signIn(g.root, "Origin", "https://"+strings.TrimPrefix(plain, "http://"))
	g.expect(a, 200)
	if c == nil || !c.Secure || c.Name != "__Host-leasehold_session" {
		t.Fatalf("behind a proxy the cookie is %v", c)
	}
	g.expect(g.ask("GET", "/v1/resources", "", "Cookie", sent(c), "Sec-Fetch-Site", "same-origin"), 200)
}

// An event stream needs no header, so EventSource can open it; it ends when the credential is revoked.
func TestStreamsByCookie(t *testing.T) {
	g := govern(t)
	_, c := g.signIn(g.ann)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", g.URL+"/v1/watch?prefix=a/", nil)
	r.Header.Set("Cookie", sent(c))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != 200 {
		t.Fatalf("the answer is %s", stream.Status)
	}
	g.expect(g.ask("POST", "/v1/acquire", `{"resource":"a/x","holder":"h"}`, "Authorization", "Bearer "+g.root), 200)
	lines, seen := bufio.NewScanner(stream.Body), false
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"a/x"`) {
			seen = true
			g.change(&core.ChangeAccess{Remove: access.Keys{Tokens: []string{"ann1"}}})
		}
	}
	if !seen || ctx.Err() != nil {
		t.Errorf("the event was seen: %v; the stream ended: %v", seen, ctx.Err() == nil)
	}
}

// A JWT can be longer than what a browser keeps.
func TestCredentialsThatDoNotFit(t *testing.T) {
	now := time.Now()
	long := door.SignIn{Secret: strings.Repeat("x", 4000), Until: now.Add(time.Hour)}
	if _, err := long.Cookie(false, now); err == nil || !strings.Contains(err.Error(), "access token create") {
		t.Errorf("the error is %v", err)
	}
	fits := door.SignIn{Secret: strings.Repeat("x", 3800), Until: now.Add(time.Hour)}
	if c, err := fits.Cookie(true, now); err != nil || len(c.String()) > 4096 {
		t.Errorf("a cookie that fits is %v, %v", c, err)
	}
}

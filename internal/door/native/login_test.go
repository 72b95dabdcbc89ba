package native

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// govern turns access on, for an admin and a member of a/, and returns their tokens. That of the member lasts a minute.
func govern(t testing.TB, e engine.Engine) (admin, member string) {
	t.Helper()
	make := func(name string, ends int64) (string, *access.Token) {
		secret, hash := credential.NewToken()
		return secret, &access.Token{ID: name + "1", Hash: hash, Principal: name, ExpiresWall: ends}
	}
	admin, first := make("root", 0)
	member, second := make("ann", time.Now().Add(time.Minute).UnixNano())
	_, err := e.Do(context.Background(), &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{first, second},
		Bindings: []*access.Binding{
			{Name: "admins", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
			{Name: "a", Role: "member", Principal: "ann", Namespace: "default", Prefix: "a/"},
			{Name: "machines", Role: "member", Principal: "cert:ann", Namespace: "default", Prefix: "a/"},
		},
		Certificates: []*access.Certificate{{Name: "machines", SAN: "dns:*"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return admin, member
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestLogin(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	log := &lines{}
	door := open(e, Config{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	body := `{"resource":"a/x","holder":"somebody-else","id":"one"}`
	post := func(headers ...string) answer {
		t.Helper()
		return ask(t, door, "POST", "/v1/acquire", body, headers...)
	}
	post("Authorization", "rubbish").expect(200) // access is off
	ask(t, door, "POST", "/v1/release", `{"id":"one"}`).expect(200)
	body = `{"resource":"a/x","holder":"somebody-else","id":"two"}`

	admin, member := govern(t, e)
	got := post().expect(401, `"code":"denied"`, "leasehold login", "no valid credential")
	if h := got.header.Get("WWW-Authenticate"); h != `Bearer realm="leasehold"` {
		t.Errorf("the header is %s", h)
	}
	wrong, _ := credential.NewToken()
	got = post(bearer(wrong)...).expect(401, `"code":"denied"`, "revoked").without(wrong)
	if h := got.header.Get("WWW-Authenticate"); !strings.Contains(h, `error="invalid_token"`) {
		t.Errorf("the header is %s", h)
	}
	post("Authorization", "Basic OnNlY3JldA==").expect(401, "Bearer TOKEN")
	post(append(bearer(member), bearer(member)...)...).expect(401, "send one")
	post("authorization", "bearer  "+member).expect(200)
	ask(t, door, "POST", "/v1/release", `{"id":"two"}`, bearer(member)...).expect(200)

	ask(t, door, "POST", "/v1/acquire", `{"resource":"b/x","holder":"h","id":"three"}`, bearer(member)...).
		expect(403, "ann may not")

	who := read[v1.Whoami](ask(t, door, "GET", "/v1/access/whoami", "", bearer(member)...).expect(200))
	if who.Principal != "ann" || who.Credential != "token" || who.Expires == nil {
		t.Errorf("the server takes ann for %+v", who)
	}
	done := read[v1.List[v1.Operation]](ask(t, door, "GET", "/v1/audit?resource=a/x", "", bearer(admin)...).expect(200))
	if d := done.Items[0]; d.Verb != "release" || d.Actor != "ann" {
		t.Errorf("the journal has %+v", d)
	}
	all := ask(t, door, "GET", "/v1/audit", "", bearer(admin)...).expect(200, "the token is unknown or was revoked")
	all.without("no credential was sent")
	for _, secret := range []string{wrong, member, admin} {
		all.without(secret[3:])
		if strings.Contains(log.String(), secret[3:]) {
			t.Errorf("the log has a secret")
		}
	}
}

// Whatever is not for everybody needs a credential.
func TestEveryOperationNeedsACredential(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{})
	govern(t, e)
	for _, o := range operations {
		path := strings.NewReplacer("{path...}", "x", "{id}", "x", "{name}", "x").Replace(o.path)
		ask(t, door, o.method, path, "{}").expect(401)
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/version", "/v1/openapi.yaml"} {
		ask(t, door, "GET", path, "").expect(200)
	}
}

// Metrics count what others do: they are for those who may see the servers.
func TestMetricsNeedARight(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{})
	ask(t, door, "GET", "/metrics", "").expect(200)
	admin, member := govern(t, e)
	ask(t, door, "GET", "/metrics", "").expect(401)
	ask(t, door, "GET", "/metrics", "", bearer(member)...).expect(403, "monitor")
	ask(t, door, "GET", "/metrics", "", bearer(admin)...).expect(200, `leasehold_logins_refused_total{reason="missing"} 1`)
}

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{})
	admin, _ := govern(t, e)
	slowed := false
	for range 30 {
		wrong, _ := credential.NewToken()
		got := ask(t, door, "GET", "/v1/resources", "", bearer(wrong)...)
		slowed = slowed || got.status == 429 && got.header.Get("Retry-After") == "1" &&
			strings.Contains(got.body, `"code":"limited"`)
	}
	if !slowed {
		t.Error("nobody is slowed down")
	}
	ask(t, door, "GET", "/v1/resources", "", bearer(admin)...).expect(200)
}

// send sends a request with a token, and returns its answer.
func (h *house) send(method, path, body, token string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, "http://pipe"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return response
}

// What stays ends when its credential does.
func TestWaitsAndWatchesEndWithTheCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		admin, member := govern(t, h.engine)
		held := h.send("POST", "/v1/acquire", `{"resource":"a/x","holder":"root","id":"r","ttl":"1h"}`, admin)
		_, _ = io.Copy(io.Discard, held.Body)
		held.Body.Close()
		if held.StatusCode != 200 {
			t.Fatal(held.Status)
		}
		began := time.Now()
		watched := make(chan time.Duration)
		go func() {
			w := h.send("GET", "/v1/watch?prefix=a/", "", member)
			defer w.Body.Close()
			last := ""
			for lines := bufio.NewScanner(w.Body); lines.Scan(); {
				if lines.Text() != "" {
					last = lines.Text()
				}
			}
			if w.StatusCode != 200 || !strings.Contains(last, "the credential expired") {
				t.Errorf("the watch ends with %s, %s", w.Status, last)
			}
			watched <- time.Since(began)
		}()
		waited := h.send("POST", "/v1/acquire", `{"resource":"a/x","holder":"ann","id":"w","wait":"1h"}`, member)
		defer waited.Body.Close()
		body, _ := io.ReadAll(waited.Body)
		if took := time.Since(began); waited.StatusCode != 401 || !strings.Contains(string(body), "expired") ||
			took > time.Minute+time.Second {
			t.Errorf("after %v the wait is answered %s %s", took, waited.Status, body)
		}
		if took := <-watched; took > time.Minute+time.Second {
			t.Errorf("the watch ended after %v", took)
		}
		late := h.send("POST", "/v1/renew", `{"id":"w"}`, member)
		defer late.Body.Close()
		if late.StatusCode != 401 {
			t.Errorf("a request after the end is answered %s", late.Status)
		}
	})
}

// A token that is made to end earlier, or is given other groups, ends what it has open then.
func TestWhatStaysEndsWithAChangedToken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*access.Token)
		after  time.Duration
	}{
		"earlier": {func(t *access.Token) { t.ExpiresWall = time.Now().Add(10 * time.Second).UnixNano() }, 10 * time.Second},
		"past":    {func(t *access.Token) { t.ExpiresWall = 1 }, 0},
		"later":   {func(t *access.Token) { t.ExpiresWall = time.Now().Add(time.Hour).UnixNano() }, time.Hour},
		"another": {func(t *access.Token) { t.Hash = strings.Repeat("x", 32) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Config{})
				defer h.close()
				admin, member := govern(t, h.engine)
				held := h.send("POST", "/v1/acquire", `{"resource":"a/x","holder":"root","id":"r","ttl":"10h"}`, admin)
				_, _ = io.Copy(io.Discard, held.Body)
				held.Body.Close()
				ended := make(chan time.Duration, 2)
				var began time.Time
				open := func(method, path, body string) {
					got := h.send(method, path, body, member)
					defer got.Body.Close()
					_, _ = io.Copy(io.Discard, got.Body)
					ended <- time.Since(began)
				}
				go open("GET", "/v1/watch?prefix=a/", "")
				go open("POST", "/v1/acquire", `{"resource":"a/x","holder":"ann","id":"w","wait":"5h"}`)
				time.Sleep(time.Second)
				token, _ := engine.PolicyOf(h.engine).Token("ann1")
				changed := *token
				c.change(&changed)
				began = time.Now()
				root := engine.WithAsker(t.Context(), &access.System)
				if _, err := h.engine.Do(root, &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{&changed}}}); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if took := <-ended; took < c.after || took > c.after+time.Second {
						t.Errorf("it ended after %v", took)
					}
				}
			})
		})
	}
}

// The policy knows about when a token was last used, and that is no operation.
func TestUsesOfTokensAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		admin, _ := govern(t, h.engine)
		before := engine.PolicyOf(h.engine)
		for range 3 {
			got := h.send("GET", "/v1/resources", "", admin)
			_, _ = io.Copy(io.Discard, got.Body)
			got.Body.Close()
		}
		used := time.Now()
		time.Sleep(2 * time.Minute)
		after := engine.PolicyOf(h.engine)
		root, _ := after.Token("root1")
		ann, _ := after.Token("ann1")
		if root.UsedWall != used.UnixNano() || ann.UsedWall != 0 || before.Revision != after.Revision {
			t.Errorf("the tokens are %+v and %+v", root, ann)
		}
		page, err := h.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Limit: 9})
		if err != nil || len(page.Lines) != 1 {
			t.Errorf("the journal has %+v, %v", page.Lines, err)
		}
	})
}

// A client certificate is enough, if a rule is for it.
func TestLoginByCertificate(t *testing.T) {
	inBothVersions(t, func(t *testing.T, h *house) {
		govern(t, h.engine)
		_, err := h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "a/x", Holder: "ann", ID: "one"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "b/x", Holder: "ann", ID: "two"})
		if err == nil || !strings.Contains(err.Error(), "cert:ann may not") {
			t.Errorf("what is not allowed is answered %v", err)
		}
		who, err := h.caller.Whoami(t.Context())
		if err != nil || who.Principal != "cert:ann" || who.Credential != "certificate" || who.Expires == nil {
			t.Errorf("the server takes ann for %+v, %v", who, err)
		}
		page, err := h.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default",
			Resource: "a/x", Limit: 1})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Actor != "cert:ann" {
			t.Errorf("the journal has %+v, %v", page.Lines, err)
		}
	})
}

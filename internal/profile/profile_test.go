package profile

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestACredentialIsForItsServersAlone(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "leasehold"))
	mine := Credential{Servers: []string{"https://a:1", "https://b:1"}, Token: "lh_secret"}
	if err := d.SaveCredential("prod", mine); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key     string
		servers []string
		want    bool
	}{
		{"prod", []string{"https://a:1"}, true},
		{"prod", []string{"https://b:1", "https://a:1"}, true},
		{"prod", []string{"https://a:1", "https://evil:1"}, false},
		{"prod", []string{"http://a:1"}, false},
		{"other", []string{"https://a:1"}, false},
	} {
		if _, ok, err := d.Credential(c.key, c.servers); ok != c.want || err != nil {
			t.Errorf("%s at %v: %v, %v", c.key, c.servers, ok, err)
		}
	}
	for name, want := range map[string]os.FileMode{credentialsFile: 0o600, ".": 0o700 | os.ModeDir} {
		if info, err := os.Stat(filepath.Join(string(d), name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if known, err := d.ForgetCredential("prod"); !known || err != nil {
		t.Error(known, err)
	}
	if known, err := d.ForgetCredential("prod"); known || err != nil {
		t.Error(known, err)
	}
}

// A file that others can read is not used, so that its owner notices.
func TestCredentialsThatOthersCanReadAreRefused(t *testing.T) {
	d := Dir(t.TempDir())
	path := filepath.Join(string(d), credentialsFile)
	if err := os.WriteFile(path, []byte(`{"credentials":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Credential("a", nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

func TestContextsAreKept(t *testing.T) {
	d := Dir(t.TempDir())
	c, err := d.Contexts()
	if err != nil || len(c.All) != 0 {
		t.Fatal(c, err)
	}
	c.All["prod"], c.Current = Context{"server": "https://a"}, "prod"
	if err := d.SaveContexts(c); err != nil {
		t.Fatal(err)
	}
	if again, err := d.Contexts(); err != nil || again.Current != "prod" || again.All["prod"]["server"] != "https://a" {
		t.Error(again, err)
	}
	c.All["prod"]["colour"] = "blue"
	if err := d.SaveContexts(c); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Contexts(); err == nil || !strings.Contains(err.Error(), `context prod has "colour"`) {
		t.Error(err)
	}
	for _, name := range []string{"", "a b", "http://x", "-x", strings.Repeat("x", 65)} {
		if CheckName(name) == nil {
			t.Errorf("%q can name a context", name)
		}
	}
}

// provider is an OpenID provider with a device flow, which is confirmed at the third time of asking.
func provider(t *testing.T) (issuer string, refreshed *atomic.Int64) {
	refreshed = new(atomic.Int64)
	asked := 0
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, value map[string]any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"issuer": issuer, "device_authorization_endpoint": issuer + "/device",
			"token_endpoint": issuer + "/token"})
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "cli" || !strings.Contains(r.FormValue("scope"), "openid") {
			answer(w, 400, map[string]any{"error": "invalid_client"})
			return
		}
		answer(w, 200, map[string]any{"device_code": "dc", "user_code": "ABCD", "verification_uri": issuer + "/go",
			"interval": 1, "expires_in": 600})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("grant_type") {
		case "refresh_token":
			if r.FormValue("refresh_token") != "r1" {
				answer(w, 400, map[string]any{"error": "invalid_grant", "error_description": "it was used"})
				return
			}
			refreshed.Add(1)
			answer(w, 200, map[string]any{"id_token": "jwt2", "expires_in": 3600, "refresh_token": "r2"})
		default:
			if asked++; asked < 3 {
				answer(w, 400, map[string]any{"error": "authorization_pending"})
				return
			}
			answer(w, 200, map[string]any{"id_token": "jwt1", "access_token": "x", "expires_in": 60,
				"refresh_token": "r1"})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	issuer = server.URL
	return issuer, refreshed
}

// A login by the device flow gets a token, and another one when it ends; what was got is kept for the next command.
func TestDeviceLogin(t *testing.T) {
	issuer, refreshed := provider(t)
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	device := &Device{Issuer: issuer, ClientID: "cli"}
	var seen Prompt
	got, err := device.Begin(t.Context(), clock, func(p Prompt) { seen = p })
	if err != nil || got.Token != "jwt1" || seen.Code != "ABCD" || !got.Expires.Equal(now.Add(time.Minute)) {
		t.Fatalf("%+v, %+v, %v", got, seen, err)
	}
	d := Dir(t.TempDir())
	token := d.Token("prod", got, clock)
	expect := func(want string) {
		t.Helper()
		if text, err := token(t.Context()); text != want || err != nil {
			t.Errorf("got %q, %v, want %q", text, err, want)
		}
	}
	expect("jwt1")
	now = now.Add(40 * time.Second) // it ends within half a minute
	expect("jwt2")
	expect("jwt2")
	if kept, ok, err := d.Credential("prod", nil); !ok || err != nil || kept.Token != "jwt2" || kept.Login.Refresh != "r2" {
		t.Errorf("%+v, %v", kept, err)
	}
	if refreshed.Load() != 1 {
		t.Errorf("it was refreshed %d times", refreshed.Load())
	}
	now = now.Add(2 * time.Hour)
	_, err = token(t.Context())
	if !errors.Is(err, v1.ErrUnauthenticated) || !errors.Is(err, leasehold.ErrDenied) ||
		!strings.Contains(err.Error(), "your login at "+issuer+" has ended: ") {
		t.Errorf("after its end: %v", err)
	}
	// The person logs in again while the command runs.
	if err := d.SaveCredential("prod", Credential{Token: "jwt3"}); err != nil {
		t.Fatal(err)
	}
	expect("jwt3")
}

// Two commands run at the same time, and the issuer takes each refresh token once.
func TestAnotherCommandHasRefreshed(t *testing.T) {
	issuer, refreshed := provider(t)
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	d := Dir(t.TempDir())
	had := Credential{Token: "jwt1", Expires: now.Add(time.Minute),
		Login: &Device{Issuer: issuer, ClientID: "cli", Refresh: "r1"}}
	if err := d.SaveCredential("prod", had); err != nil {
		t.Fatal(err)
	}
	long, short := d.Token("prod", had, clock), d.Token("prod", had, clock)
	now = now.Add(time.Minute)
	for range 2 {
		for _, token := range []v1.TokenFunc{short, long} {
			if got, err := token(t.Context()); got != "jwt2" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
	}
	if refreshed.Load() != 1 {
		t.Errorf("it was refreshed %d times", refreshed.Load())
	}
}

// An issuer that cannot be asked has not ended anything.
func TestAnIssuerIsAway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	now := time.Unix(1e9, 0)
	token := Dir(t.TempDir()).Token("prod", Credential{Token: "jwt1", Expires: now,
		Login: &Device{Issuer: server.URL, ClientID: "cli", Refresh: "r1"}}, func() time.Time { return now })
	_, err := token(t.Context())
	if err == nil || errors.Is(err, v1.ErrUnauthenticated) || !strings.Contains(err.Error(), "cannot be asked") {
		t.Errorf("the error is %v", err)
	}
}

func TestMistakesOfAProvider(t *testing.T) {
	issuer, _ := provider(t)
	for _, c := range []struct {
		device Device
		want   string
	}{
		{Device{Issuer: "http://id.example", ClientID: "cli"}, "an issuer needs TLS"},
		{Device{Issuer: issuer, ClientID: "unknown"}, "answered 400"},
		{Device{Issuer: issuer + "/elsewhere", ClientID: "cli"}, "answered 404"},
	} {
		_, err := c.device.Begin(context.Background(), time.Now, func(Prompt) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.device.Issuer, err, c.want)
		}
	}
}

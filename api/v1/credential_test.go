package v1_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// wants starts a server that knows one token. It answers those who have it with what was asked, and notes how often
// it was asked.
func wants(t *testing.T, token *string, asked *[]string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if r.Header.Get("Authorization") != "Bearer "+*token {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"denied","detail":"this token is unknown"}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"a"}`)
	}))
	t.Cleanup(server.Close)
	return server
}

// A token that ends while a program runs costs one more request, and no error.
func TestATokenThatEndedIsReplaced(t *testing.T) {
	known, asked := "one", []string(nil)
	server := wants(t, &known, &asked)
	mine := "one"
	c := newCaller(t, v1.CallerConfig{Server: server.URL, Token: func(ctx context.Context) (string, error) {
		if v1.Rejected(ctx) == mine {
			mine = "two"
		}
		return mine, nil
	}})
	renew := func() error { _, err := c.Renew(t.Context(), v1.RenewRequest{ID: "a"}); return err }
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	known = "two"
	if err := renew(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(asked, " "); got != "one one two" {
		t.Errorf("the server was shown %s", got)
	}
	known = "three" // which the program does not have
	err := renew()
	if !errors.Is(err, v1.ErrUnauthenticated) || !errors.Is(err, leasehold.ErrDenied) {
		t.Errorf("with a wrong token: %v", err)
	}
	if len(asked) != 4 {
		t.Errorf("a token that was refused was sent again: %q", asked)
	}
}

// Nobody on the way reads a token: it is sent to this machine or over TLS, unless somebody said so.
func TestATokenIsNotSentInTheOpen(t *testing.T) {
	var shown []string
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		shown = append(shown, r.URL.Host+" "+r.Header.Get("Authorization"))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})
	for _, c := range []struct {
		server   string
		insecure bool
		sent     bool
	}{
		{"http://leases.example:4653", false, false},
		{"http://10.0.0.1:4653", false, false},
		{"http://127.0.0.1.example:4653", false, false},
		{"http://localhost.example:4653", false, false},
		{"http://leases.example:4653", true, true},
		{"https://leases.example:4653", false, true},
		{"http://localhost:4653", false, true},
		{"http://127.0.0.9:4653", false, true},
		{"http://[::1]:4653", false, true},
		{"http://[::ffff:127.0.0.1]:4653", false, true},
	} {
		shown = nil
		caller := newCaller(t, v1.CallerConfig{Server: c.server, Insecure: c.insecure,
			Client: &http.Client{Transport: transport},
			Token:  func(context.Context) (string, error) { return "secret", nil }})
		err := caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"})
		sent := len(shown) == 1 && strings.HasSuffix(shown[0], "Bearer secret")
		if sent != c.sent || (err == nil) != c.sent || len(shown) > 0 != c.sent {
			t.Errorf("%s (insecure %v): sent %q, %v", c.server, c.insecure, shown, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the token: %v", err)
		}
	}
}

// A server cannot make a caller show its token to another one, whatever HTTP client the program brings.
func TestATokenDoesNotFollowARedirect(t *testing.T) {
	stolen := make(chan string, 1)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen <- r.Header.Get("Authorization")
	}))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	for _, client := range []*http.Client{nil, {Transport: &http.Transport{DisableKeepAlives: true}}} {
		c := newCaller(t, v1.CallerConfig{Server: server.URL, Client: client,
			Token: func(context.Context) (string, error) { return "secret", nil }})
		if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); err == nil {
			t.Error("a redirect was followed")
		}
	}
	select {
	case header := <-stolen:
		t.Errorf("the other server was asked, with %q", header)
	default:
	}
}

func TestATokenFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	read := v1.TokenFile(path)
	expect := func(ctx context.Context, want string) {
		t.Helper()
		if got, err := read(ctx); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	write := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := read(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("without a file: %v", err)
	}
	now := time.Now()
	write(" \n", now)
	if _, err := read(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("with an empty file: %v", err)
	}
	write("one\n", now)
	expect(t.Context(), "one")
	write("two\n", now.Add(time.Second))
	expect(t.Context(), "two")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(t.Context(), "two") // somebody is replacing it
	write("six\n", now.Add(time.Second))
	expect(t.Context(), "two") // it looks as before
	known, asked := "six", []string(nil)
	c := newCaller(t, v1.CallerConfig{Server: wants(t, &known, &asked).URL, Token: read})
	if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); err != nil || len(asked) != 2 {
		t.Errorf("%v, after %q", err, asked)
	}
}

func TestTheTokenOfTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{}, "none"},
		{map[string]string{"LEASEHOLD_TOKEN": "lh_x"}, "lh_x"},
		{map[string]string{"LEASEHOLD_TOKEN": "lh_x\n", "LEASEHOLD_TOKEN_FILE": file}, "lh_x"},
		{map[string]string{"LEASEHOLD_TOKEN": "57"}, "none"},
		{map[string]string{"LEASEHOLD_TOKEN": "57\n58"}, "none"},
		{map[string]string{"LEASEHOLD_TOKEN": "57", "LEASEHOLD_ACCESS_TOKEN": "lh_x"}, "lh_x"},
		{map[string]string{"LEASEHOLD_TOKEN": "57", "LEASEHOLD_TOKEN_FILE": file}, "from-file"},
	} {
		got := "none"
		if f := v1.EnvironToken(func(name string) string { return c.env[name] }); f != nil {
			got, _ = f(t.Context())
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}

// Where tokens come from may be down for a while: a program that renews tries again.
func TestATokenThatCannotBeHadIsUnavailable(t *testing.T) {
	c := newCaller(t, v1.CallerConfig{Token: func(context.Context) (string, error) { return "", io.ErrUnexpectedEOF }})
	_, err := c.Renew(t.Context(), v1.RenewRequest{ID: "a"})
	if !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

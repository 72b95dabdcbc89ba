package v1_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestReady(t *testing.T) {
	status, body := 200, "[+]serving ok\n[+]engine ok\nreadyz check passed\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !r.URL.Query().Has("verbose") {
			t.Errorf("it asks for %s", r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	c, err := v1.NewCaller(v1.CallerConfig{Server: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	checks, err := c.Ready(context.Background())
	if err != nil || !slices.Equal(checks, []string{"serving ok", "engine ok"}) {
		t.Errorf("got %q, %v", checks, err)
	}
	body = "[+]engine ok\n[!]a token ends\nreadyz check passed\n"
	if checks, err = c.Ready(context.Background()); err != nil || !slices.Equal(checks, []string{"engine ok", v1.ReadyWarning + "a token ends"}) {
		t.Errorf("got %q, %v", checks, err)
	}
	status, body = 503, "[-]serving failed: the server is stopping\n[+]engine ok\nreadyz check failed\n"
	checks, err = c.Ready(context.Background())
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.HasSuffix(err.Error(), "is not ready: serving failed: the server is stopping") || len(checks) != 2 {
		t.Errorf("got %q, %v", checks, err)
	}
	status = 404
	if _, err := c.Ready(context.Background()); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("what is no server gives %v", err)
	}
	s.Close()
	if _, err := c.Ready(context.Background()); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("nobody gives %v", err)
	}
}

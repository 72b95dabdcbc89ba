package agent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
)

// What answers where the shared server was may be any program of anybody by now: it is not sent a token.
func TestNoTokenForTheSharedServer(t *testing.T) {
	anybody := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"version":"1"}`))
	}))
	defer anybody.Close()
	dir := profile.Agents(t.TempDir())
	if err := dir.Publish(anybody.URL); err != nil {
		t.Fatal(err)
	}
	file := dir.File("token")
	if err := os.WriteFile(file, []byte("lh_secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &place{dir: state{dir}, local: "127.0.0.1:0", client: config.Client{Token: v1.TokenFile(file)}}
	if err := p.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.client.Servers[0] != anybody.URL || p.client.Token != nil {
		t.Errorf("%v would be sent a token: %v", p.client.Servers, p.client.Token != nil)
	}
}

package native

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/listen"
)

// A rebound name is the page's own origin, so that nothing but the name gives it away.
func TestReboundNamesAreRefused(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{Hosts: listen.NewHosts(nil, "leases.example")})
	for host, want := range map[string]int{"evil.example:4653": 421, "leases.example": 200, "localhost:4653": 200} {
		for _, r := range []struct{ method, path, body string }{
			{"POST", "/v1/acquire", `{"resource":"r","holder":"x","id":"x","ttl":"1m"}`},
			{"GET", "/v1/resources", ""},
			{"GET", "/readyz", ""},
			{"GET", "/metrics", ""},
		} {
			request := httptest.NewRequest(r.method, "http://"+host+r.path, strings.NewReader(r.body))
			request.Header.Set("Origin", "http://"+host)
			request.Header.Set("Sec-Fetch-Site", "same-origin")
			request.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			door.ServeHTTP(w, request)
			if w.Code != want {
				t.Errorf("%s %s at %s: %d, want %d: %s", r.method, r.path, host, w.Code, want, w.Body)
			}
			if want == 421 && !strings.Contains(w.Body.String(), `"code":"denied"`) {
				t.Errorf("%s at %s: %s", r.path, host, w.Body)
			}
		}
	}
}

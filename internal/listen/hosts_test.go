package listen

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	plain := NewHosts(nil, "Leases.Example.com", "*.lab.example", "")
	secure := NewHosts(func(host string) bool { return host == "certified.example" })
	for _, c := range []struct {
		hosts *Hosts
		host  string
		want  bool
	}{
		{plain, "localhost:4653", true},
		{plain, "LOCALHOST", true},
		{plain, "app.localhost:4653", true},
		{plain, "127.0.0.1:4653", true},
		{plain, "10.1.2.3", true},
		{plain, "[::1]:4653", true},
		{plain, "[::1]", true},
		{plain, "[fe80::1%25eth0]:80", true},
		{plain, "leases.example.com:1", true},
		{plain, "leases.example.com.:1", true},
		{plain, "a.lab.example", true},
		{plain, "a.b.lab.example", false},
		{plain, "lab.example", false},
		{plain, ".lab.example", true}, // no browser can call it
		{plain, "", true},
		{plain, "evil.example:4653", false},
		{plain, "localhost.evil.example", false},
		{plain, "127.0.0.1.evil.example", false},
		{plain, "evillocalhost", false},
		{plain, "x.leases.example.com", false},
		{plain, "certified.example", false},
		{secure, "certified.example:4653", true},
		{secure, "Certified.Example", true},
		{secure, "leases.example.com", false},
		{secure, "127.0.0.1:4653", true},
		{nil, "anything.example", true},
	} {
		if got := c.hosts.Allows(c.host); got != c.want {
			t.Errorf("Allows(%q) = %v, want %v", c.host, got, c.want)
		}
	}
}

func TestGuardRefusesOtherHosts(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	guard := NewHosts(nil).Guard(ok)
	for host, want := range map[string]int{"http://127.0.0.1:6060/": 204, "http://evil.example/": 421} {
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, httptest.NewRequest("GET", host, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", host, w.Code, want, w.Body)
		}
		if want == 421 && !strings.Contains(w.Body.String(), "--host-names") {
			t.Errorf("the refusal does not say what to do: %s", w.Body)
		}
	}
}

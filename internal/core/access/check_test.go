package access

import "testing"

func TestKeysAreFetchedSafely(t *testing.T) {
	for url, want := range map[string]bool{
		"https://token.example":          true,
		"http://localhost":               true,
		"http://localhost:8080/realm":    true,
		"http://127.0.0.1:1":             true,
		"http://[::1]:1/x":               true,
		"http://token.example":           false,
		"http://127.0.0.1.example":       false,
		"http://localhost@evil.example/": false,
		"http://localhost:x@evil/":       false,
		"ftp://localhost":                false,
		"kubernetes":                     false,
	} {
		if got := askedSafely(url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
	i := &Issuer{Name: "k", URL: "kubernetes", Audiences: []string{"a"}}
	if i.check() == nil {
		t.Error("an issuer is taken that cannot be asked")
	}
	i.Keys = "{}"
	if err := i.check(); err != nil {
		t.Error(err)
	}
}

func TestNobodyIsCalledAsServersAre(t *testing.T) {
	token := &Token{ID: "t", Hash: string(make([]byte, 32)), Principal: System.Principal}
	if token.check() == nil {
		t.Error("a token is taken that would pass for a server")
	}
	rule := &Certificate{Name: "c", SAN: "dns:x", Principal: System.Principal}
	if rule.check() == nil {
		t.Error("a rule is taken that would pass for a server")
	}
}

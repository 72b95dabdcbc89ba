package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold/internal/access/providertest"
)

// atProvider returns a server that trusts an OpenID provider, whose ann may do everything below a/.
func atProvider(t *testing.T, s providertest.Sessions) (kitchen, *providertest.Provider) {
	t.Helper()
	p := providertest.Start(t)
	p.Sessions = s
	p.Add(jose.ES256)
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, _, _ := strings.Cut(string(page), "\n## Five recipes\n")
	return cook(t, shellOf(begin)+`
		leasehold access issuer set corp --url `+p.URL()+` --audience leasehold
		leasehold access bind member --to corp:ann --prefix a/`), p
}

var codeShown = regexp.MustCompile(`enter the code (\S+)$`)

// logIn runs leasehold login as a person does, and confirms it in the browser.
func (k kitchen) logIn(t *testing.T, p *providertest.Provider) (said string) {
	t.Helper()
	cmd := exec.Command("leasehold", "login", "--issuer", p.URL(), "--client-id", providertest.ClientID)
	cmd.Env = k.environ()
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if code := codeShown.FindStringSubmatch(lines.Text()); code != nil {
			p.Confirm(code[1], providertest.Set{"sub": "ann"})
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	return said
}

// kept returns what login has kept.
func (k kitchen) kept(t *testing.T) string {
	t.Helper()
	name := filepath.Join(k.dir, "leasehold", "credentials.json")
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("credentials are kept with mode %v, %v", info, err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A person confirms in a browser once, and works on; the token is replaced whenever it ends, until the provider ends
// the login.
func TestLoginByIssuer(t *testing.T) {
	k, p := atProvider(t, providertest.Sessions{Life: 2 * time.Second, Refresh: true})
	said := k.logIn(t, p)
	expectTexts(t, said, "Open "+p.URL()+"/go and enter the code CODE-1\n",
		"logged in to "+k.server+" as corp:ann\n")
	first := k.kept(t)
	out := k.run(t, `leasehold acquire a/x --ttl 1m; leasehold access whoami; leasehold acquire b/x || echo refused: $?`)
	expectTexts(t, out, "a/x", "principal  corp:ann", "refused: 77")
	// Each token lasts for less than a command looks ahead.
	if n := p.Refreshes.Load(); n < 3 || k.kept(t) == first {
		t.Errorf("the token was replaced %d times", n)
	}
	// What runs for long goes on with what another command has got meanwhile.
	k.run(t, `leasehold run a/long --ttl 1m -- sh -c 'leasehold list && leasehold list'; leasehold list`)

	p.Down.Store(true)
	out = k.run(t, `leasehold list || echo refused: $?`)
	expectTexts(t, out, "the login cannot be renewed, because "+p.URL()+" cannot be asked: ", "refused: 69")
	p.Down.Store(false)
	p.End()
	out = k.run(t, `leasehold list || echo refused: $?`)
	expectTexts(t, out, "leasehold: your login at "+p.URL()+" has ended: ", "invalid_grant the session has ended\n",
		"\nlog in again: leasehold login --issuer "+p.URL()+" --client-id cli\n", "refused: 77")
	k.logIn(t, p)
	k.run(t, `leasehold list`)
	if out := k.run(t, `leasehold context list -o json; leasehold config -o json || true`); strings.Contains(out, "secret") {
		t.Errorf("a refresh token is shown: %s", out)
	}
}

// Without refresh tokens, the person is told what to type when the token has ended.
func TestLoginByIssuerEnds(t *testing.T) {
	k, p := atProvider(t, providertest.Sessions{Life: 3 * time.Second})
	k.logIn(t, p)
	k.run(t, `leasehold acquire a/x --ttl 1m`)
	out := k.run(t, `while leasehold list >out 2>&1; do sleep 0.1; done; leasehold list || echo refused: $?`)
	expectTexts(t, out, "leasehold: the JWT expired at 20",
		"\nlog in again: leasehold login --issuer "+p.URL()+" --client-id cli\n", "refused: 77")
}

func expectTexts(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("it did not say %q:\n%s", text, out)
		}
	}
}

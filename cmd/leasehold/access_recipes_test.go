package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Each recipe of docs/access.md is run by a shell, against a server of its own.
func TestAccessRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, _ := strings.Cut(string(page), "\n## Five recipes\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	after := map[string]func(*testing.T, kitchen){
		"One team": func(t *testing.T, k kitchen) { k.said(t, "yes, but only", "jobs/nightly") },
		"Two teams": func(t *testing.T, k kitchen) {
			k.said(t, "principal  root", "group on-call", "operator")
			if n := strings.Count(k.out, "refused: 77"); n != 2 {
				t.Errorf("%d of 2 were refused:\n%s", n, k.out)
			}
		},
		"CI without secrets": asGitHub,
		"Terraform":          asTerraform,
		"A read-only console, and Prometheus": func(t *testing.T, k kitchen) {
			k.said(t, "refused: 77", "# HELP")
		},
	}
	recipes := strings.Split(rest, "\n### ")[1:]
	if len(recipes) != len(after) {
		t.Errorf("there are %d recipes, and %d are known here", len(recipes), len(after))
	}
	for _, recipe := range recipes {
		title, text, _ := strings.Cut(recipe, "\n")
		t.Run(title, func(t *testing.T) {
			after[title](t, cook(t, shellOf(begin)+shellOf(text)))
		})
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// shellOf returns what a page says to type.
func shellOf(page string) (script string) {
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		script += block[1]
	}
	return script
}

// A kitchen is where a recipe was run.
type kitchen struct{ dir, server, out string }

func cook(t *testing.T, script string) kitchen {
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	k := kitchen{dir: t.TempDir(), server: "http://" + s.address}
	k.out = k.run(t, strings.ReplaceAll(script, "http://127.0.0.1:4653", k.server))
	return k
}

func (k kitchen) run(t *testing.T, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = k.dir
	cmd.Env = append(k.environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

func (k kitchen) environ() []string {
	return append(os.Environ(), "HOME="+k.dir, "XDG_CONFIG_HOME="+k.dir, "LEASEHOLD_SERVER="+k.server,
		"GORACE=atexit_sleep_ms=0")
}

func (k kitchen) said(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(k.out, text) {
			t.Errorf("it did not say %q:\n%s", text, k.out)
		}
	}
}

// asGitHub gives the issuer keys that are known here, and asks with a JWT as GitHub makes them.
func asGitHub(t *testing.T, k kitchen) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	jwks := fmt.Sprintf(`{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"k","n":"%s","e":"%s"}]}`,
		text(key.N.Bytes()), text(big.NewInt(int64(key.E)).Bytes()))
	if err := os.WriteFile(filepath.Join(k.dir, "jwks.json"), []byte(jwks), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run(t, `leasehold access issuer set github --keys-file jwks.json \
		--url https://token.actions.githubusercontent.com --audience leases \
		--claim repository=acme/web:ci-web`, "LEASEHOLD_TOKEN_FILE="+filepath.Join(k.dir, "admin.token"))
	k.run(t, "leasehold run deploy/web -- true", "LEASEHOLD_TOKEN="+jobToken(t, key, "acme/web"))
	out := k.run(t, "leasehold run deploy/web -- true || echo refused: $?", "LEASEHOLD_TOKEN="+jobToken(t, key, "evil/web"))
	if !strings.Contains(out, "refused: 77") {
		t.Errorf("another repository: %s", out)
	}
}

// jobToken returns a JWT as a job of a repository has it.
func jobToken(t *testing.T, key *rsa.PrivateKey, repository string) string {
	part := func(value map[string]any) string {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	now := time.Now().Unix()
	head := part(map[string]any{"alg": "RS256", "kid": "k", "typ": "JWT"}) + "." + part(map[string]any{
		"iss": "https://token.actions.githubusercontent.com", "aud": "leases", "sub": "repo:" + repository,
		"repository": repository, "iat": now, "exp": now + 300})
	sum := sha256.Sum256([]byte(head))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return head + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// asTerraform locks states as Terraform's http backend does.
func asTerraform(t *testing.T, k kitchen) {
	secret, err := os.ReadFile(filepath.Join(k.dir, "terraform.token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state, password string
		want            int
	}{
		{"network", strings.TrimSpace(string(secret)), 200},
		{"network", "wrong", 401},
		{"other", strings.TrimSpace(string(secret)), 403},
	} {
		r, err := http.NewRequest("LOCK", k.server+"/terraform/"+c.state, strings.NewReader(`{"ID":"1","Who":"ann@laptop"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("token", c.password)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("LOCK of %s: %s, want %d", c.state, response.Status, c.want)
		}
	}
}

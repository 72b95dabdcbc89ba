package kubernetes

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Mistakes are named, and secrets are not.
func TestAddressesThatAreWrong(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	for address, want := range map[string]string{
		"kubernetes://host/ns?tokn=x":                 `unknown parameter "tokn"; known parameters: ca, cert, context`,
		"kubernetes://:secret@host/ns":                "write the token to a file",
		"kubernetes://host/ns/more":                   "one namespace",
		"kubernetes:///Upper":                         "one namespace",
		"kubernetes://host/ns?context=a":              "leave one of them out",
		"kubernetes:///ns?token=x":                    "need a server",
		"kubernetes://host?ca=/does/not/exist":        "cannot be read",
		"kubernetes://host?ca=/dev/null":              "no certificate in PEM form",
		"kubernetes://host?cert=/does/not/exist":      "cert and key are files",
		"kubernetes://host?token=/does/not/exist":     "the token cannot be read",
		"kubernetes:///ns?kubeconfig=/does/not/exist": "cannot be read",
		"kubernetes:":                                 "no API server to connect to",
	} {
		_, err := store.Open(t.Context(), address, store.Settings{})
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Setenv("KUBECONFIG", "/a:/b")
	if _, err := Open(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), "?kubeconfig=/a") {
		t.Errorf("with two files: %v", err)
	}
	if _, err := Open(t.Context(), Config{Server: "https://127.0.0.1:1"}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("nobody answers: %v", err)
	}
}

const sample = `
apiVersion: v1
kind: Config
current-context: dev
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443/", insecure-skip-tls-verify: true, tls-server-name: api}}
- {name: bad, cluster: {server: "10.0.0.1"}}
users:
- {name: token, user: {token: secret}}
- {name: file, user: {tokenFile: tokens/t}}
- {name: exec, user: {exec: {command: aws}}}
- {name: old, user: {username: ann, password: secret}}
- {name: cert, user: {client-certificate-data: "%%%", client-key-data: secret}}
contexts:
- {name: dev, context: {cluster: c, user: token, namespace: team}}
- {name: file, context: {cluster: c, user: file}}
- {name: exec, context: {cluster: c, user: exec}}
- {name: old, context: {cluster: c, user: old}}
- {name: cert, context: {cluster: c, user: cert}}
- {name: nobody, context: {cluster: c, user: missing}}
- {name: anonymous, context: {cluster: c}}
- {name: bad, context: {cluster: bad, user: token}}
- {name: nowhere, context: {cluster: missing, user: token}}
`

func TestKubeconfig(t *testing.T) {
	got, err := parseKubeconfig([]byte(sample), "/dir/config", "")
	if err != nil || got.server != "https://10.0.0.1:6443" || got.namespace != "team" || got.token.text != "secret" ||
		!got.tls.InsecureSkipVerify || got.tls.ServerName != "api" {
		t.Errorf("the current context is %+v, %v", got, err)
	}
	got, err = parseKubeconfig([]byte(sample), "/dir/config", "file")
	if err != nil || got.token.file != "/dir/tokens/t" || got.namespace != "" {
		t.Errorf("a relative name is %+v, %v", got, err)
	}
	if _, err = parseKubeconfig([]byte(sample), "/dir/config", "anonymous"); err != nil {
		t.Errorf("without a user: %v", err)
	}
	for context, want := range map[string]string{
		"exec": "kubectl create token", "old": "no longer accept", "cert": "not base64", "nobody": `user "missing"`,
		"bad": "not an https URL", "nowhere": `cluster "missing"`, "other": "choose one of dev, file",
	} {
		_, err := parseKubeconfig([]byte(sample), "/dir/config", context)
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("context %s: %v", context, err)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("token: secret: secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKubeconfig(file, ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("what is not YAML: %v", err)
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add(sample, "dev")
	f.Add("a: [", "")
	f.Fuzz(func(t *testing.T, text, context string) {
		got, err := parseKubeconfig([]byte(text), "/dir/config", context)
		if err == nil && (got.server == "" || got.token == nil || got.tls == nil) {
			t.Errorf("%q is %+v", text, got)
		}
	})
}

// A connection that hangs is replaced while others use it, and a transport changes its TLS configuration.
func TestConnectionsShareNoConfiguration(t *testing.T) {
	target := &target{tls: &tls.Config{ServerName: "a"}}
	first, second := target.transport().TLSClientConfig, target.transport().TLSClientConfig
	if first == second || first == target.tls || first.ServerName != "a" {
		t.Errorf("two transports have the configurations %p and %p of %p", first, second, target.tls)
	}
}

package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// An issuer signs tokens of service accounts, as a cluster does.
type issuer struct{ key *ecdsa.PrivateKey }

const issuerURL = "https://kubernetes.default.svc"

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key}
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keys is the file by which others know its tokens.
func (i *issuer) keys(t testing.TB) string {
	t.Helper()
	point, err := i.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"k1","x":%q,"y":%q}]}`,
		encoded(point[1:33]), encoded(point[33:]))
}

// token returns what is mounted into the pods of an account.
func (i *issuer) token(t testing.TB, audience, account string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": issuerURL, "aud": []string{audience}, "sub": "system:serviceaccount:" + account,
		"iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	text := encoded([]byte(`{"alg":"ES256","kid":"k1"}`)) + "." + encoded(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encoded(signature)
}

// The token of a service account is all that an operator in a cluster needs: it leads with it, in the namespace that it
// was given. Others of the same issuer, for another audience or of another one get nothing.
func TestServiceAccount(t *testing.T) {
	s, c := startSecure(t)
	cluster := newIssuer(t)
	s.write("jwks.json", cluster.keys(t))
	s.admin("access", "issuer", "set", "cluster", "--url", issuerURL, "--audience", "leases", "--keys-file", "jwks.json")
	s.admin("access", "bind", "member", "--to", "cluster:system:serviceaccount:apps:operator", "--prefix", "kubernetes/apps/")
	as := func(token string) *rest.Config {
		account := rest.AnonymousClientConfig(c)
		account.BearerToken, account.QPS, account.Burst = token, 1000, 1000
		return account
	}
	operator := as(cluster.token(t, "leases", "apps:operator"))
	elected(t, campaign(t, operator, "operator", "ann", true))
	if who, token := holder(t, operator, "operator"); who != "ann" || token == "" {
		t.Errorf("%q leads, with the token %q", who, token)
	}
	if said := s.admin("audit", "kubernetes/apps/operator", "-o", "json"); !strings.Contains(said, "cluster:system:serviceaccount:apps:operator") {
		t.Errorf("who it was is not in the journal:\n%s", said)
	}
	if _, err := leases(t, operator, "other").Create(t.Context(), lease("x", "ann", 15), meta.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("in another namespace: %v", err)
	}
	if _, err := leases(t, as(cluster.token(t, "leases", "apps:other")), "apps").Create(t.Context(), lease("x", "eve", 15),
		meta.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another account: %v", err)
	}
	for what, token := range map[string]string{
		"for another audience": cluster.token(t, "https://kubernetes.default.svc", "apps:operator"),
		"of another issuer":    newIssuer(t).token(t, "leases", "apps:operator"),
	} {
		if _, err := leases(t, as(token), "apps").List(t.Context(), meta.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token %s: %v", what, err)
		}
	}
}

// A client certificate says who a client is, as it does at every door.
func TestClientCertificate(t *testing.T) {
	s, c := startSecure(t, "--tls-client-ca", "certs/ca.crt")
	s.admin("access", "certificate", "set", "people", "--san", "dns:*")
	s.admin("access", "bind", "member", "--to", "cert:ann", "--prefix", "kubernetes/apps/")
	as := func(name string) *rest.Config {
		s.leasehold("cert", "client", name)
		client := rest.AnonymousClientConfig(c)
		client.CertFile, client.KeyFile = filepath.Join(s.dir, "certs", name+".crt"), filepath.Join(s.dir, "certs", name+".key")
		client.QPS, client.Burst = 1000, 1000
		return client
	}
	ann := as("ann")
	elected(t, campaign(t, ann, "operator", "ann", true))
	if said := s.admin("audit", "kubernetes/apps/operator", "-o", "json"); !strings.Contains(said, "cert:ann") {
		t.Errorf("who it was is not in the journal:\n%s", said)
	}
	if _, err := leases(t, as("eve"), "apps").List(t.Context(), meta.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a right: %v", err)
	}
	nobody := rest.AnonymousClientConfig(c)
	nobody.CertFile, nobody.KeyFile = "", ""
	if _, err := leases(t, nobody, "apps").List(t.Context(), meta.ListOptions{}); err == nil {
		t.Error("somebody without a certificate comes in")
	}
}

// admin runs a command as somebody who may do everything.
func (s *server) admin(args ...string) string {
	s.t.Helper()
	return s.leasehold(append(args, "--server", s.url, "--ca", "certs/ca.crt", "--cert", "certs/root.crt", "--key", "certs/root.key",
		"--token-file", "data/admin-token")...)
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

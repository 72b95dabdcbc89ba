package credential

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A provider is an OpenID provider on loopback.
type provider struct {
	t      testing.TB
	server *httptest.Server

	discoveries, fetches atomic.Int64
	down                 atomic.Bool
	hang                 chan struct{} // if set, answers wait for it

	mu   sync.Mutex // guards what follows
	keys map[string]jose.SigningKey
	made int
}

func startProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{t: t, keys: map[string]jose.SigningKey{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.discover)
	mux.HandleFunc("/keys", p.publish)
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	return p
}

func (p *provider) url() string { return p.server.URL }

func (p *provider) discover(w http.ResponseWriter, _ *http.Request) {
	p.discoveries.Add(1)
	if p.hang != nil {
		<-p.hang
	}
	if p.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.url(), "jwks_uri": p.url() + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
}

func (p *provider) publish(w http.ResponseWriter, _ *http.Request) {
	p.fetches.Add(1)
	_, _ = w.Write([]byte(p.jwks()))
}

// jwks returns the public keys.
func (p *provider) jwks() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var set jose.JSONWebKeySet
	for kid, k := range p.keys {
		public := k.Key.(jose.JSONWebKey).Key.(crypto.Signer).Public()
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: kid, Use: "sig"})
	}
	b, err := json.Marshal(set)
	if err != nil {
		p.t.Error(err)
	}
	return string(b)
}

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// add makes a key, and returns its id.
func (p *provider) add(a jose.SignatureAlgorithm) string {
	p.t.Helper()
	var private crypto.Signer
	var err error
	switch a {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsaKey()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	kid := "key" + strconv.Itoa(p.made)
	p.keys[kid] = jose.SigningKey{Algorithm: a, Key: jose.JSONWebKey{Key: private, KeyID: kid}}
	return kid
}

func (p *provider) drop(kid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, kid)
}

type set map[string]any

// claims are those of a good JWT, with changes; one that is nil is left out.
func (p *provider) claims(now time.Time, change set) set {
	out := set{"iss": p.url(), "sub": "repo:org/app", "aud": "leasehold", "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(time.Hour).Unix(), "repository": "org/app", "groups": []string{"dev", "ops"}}
	for name, value := range change {
		out[name] = value
		if value == nil {
			delete(out, name)
		}
	}
	return out
}

// sign signs claims.
func (p *provider) sign(kid string, c set) string {
	p.t.Helper()
	p.mu.Lock()
	key := p.keys[kid]
	p.mu.Unlock()
	return sign(p.t, key, c)
}

func sign(t testing.TB, key jose.SigningKey, c any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

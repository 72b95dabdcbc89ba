// Package providertest has an OpenID provider for tests: it publishes its keys, rotates them, signs what it is told to,
// and logs people in by the device flow or the authorization code flow.
package providertest

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

// A Provider is an OpenID provider on loopback.
type Provider struct {
	t      testing.TB
	server *httptest.Server

	Sessions Sessions // of those who log in; set before anybody does
	Person   Person   // who sits at the browser; likewise
	Nameless bool     // it does not say who it is when it sends a browser back; likewise
	Secret   string   // of the client; empty: it has none; likewise

	Discoveries, Fetches atomic.Int64
	Refreshes, Redeemed  atomic.Int64
	Down                 atomic.Bool
	Hang                 chan struct{} // if set, answers wait for it

	mu     sync.Mutex // guards what follows
	keys   map[string]jose.SigningKey
	made   int
	newest string // key, by which logins are signed
	logins map[string]*login
	codes  map[string]*visit
	issued int
}

// Start starts a provider that ends with the test.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, keys: map[string]jose.SigningKey{}, logins: map[string]*login{},
		codes: map[string]*visit{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.discover)
	mux.HandleFunc("/keys", p.publish)
	mux.HandleFunc("POST /device", p.ask)
	mux.HandleFunc("POST /token", p.give)
	mux.HandleFunc("GET /authorize", p.authorize)
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	return p
}

// URL is the issuer.
func (p *Provider) URL() string { return p.server.URL }

func (p *Provider) discover(w http.ResponseWriter, _ *http.Request) {
	p.Discoveries.Add(1)
	if p.Hang != nil {
		<-p.Hang
	}
	if p.Down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL(), "jwks_uri": p.URL() + "/keys",
		"device_authorization_endpoint": p.URL() + "/device", "token_endpoint": p.URL() + "/token",
		"authorization_endpoint": p.URL() + "/authorize", "authorization_response_iss_parameter_supported": !p.Nameless,
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
}

func (p *Provider) publish(w http.ResponseWriter, _ *http.Request) {
	p.Fetches.Add(1)
	_, _ = w.Write([]byte(p.JWKS()))
}

// JWKS returns the public keys.
func (p *Provider) JWKS() string {
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

// RSAKey is one for all tests: to make another takes long.
var RSAKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// Add makes a key, and returns its id.
func (p *Provider) Add(a jose.SignatureAlgorithm) string {
	p.t.Helper()
	var private crypto.Signer
	var err error
	switch a {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = RSAKey()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	kid := "key" + strconv.Itoa(p.made)
	p.newest = kid
	p.keys[kid] = jose.SigningKey{Algorithm: a, Key: jose.JSONWebKey{Key: private, KeyID: kid}}
	return kid
}

// Drop takes a key away.
func (p *Provider) Drop(kid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, kid)
}

// Set is what a JWT claims.
type Set map[string]any

// Claims are those of a good JWT, with changes; one that is nil is left out.
func (p *Provider) Claims(now time.Time, change Set) Set {
	out := Set{"iss": p.URL(), "sub": "repo:org/app", "aud": "leasehold", "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(time.Hour).Unix(), "repository": "org/app", "groups": []string{"dev", "ops"}}
	for name, value := range change {
		out[name] = value
		if value == nil {
			delete(out, name)
		}
	}
	return out
}

// Sign signs claims.
func (p *Provider) Sign(kid string, c Set) string {
	p.t.Helper()
	return Sign(p.t, p.Key(kid), c)
}

// Key returns a key of the provider.
func (p *Provider) Key(kid string) jose.SigningKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[kid]
}

// Sign signs claims with a key that need not be a provider's.
func Sign(t testing.TB, key jose.SigningKey, c any) string {
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

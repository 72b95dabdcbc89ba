package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxIssuerKeys = 100
	maxTries      = 8 // signatures that are checked for one JWT which does not say by which key it was made
	minRSA        = 2048
)

// A keySet are the public keys of an issuer. It is never changed.
type keySet struct {
	text string // as it was fetched
	keys []jose.JSONWebKey
}

// parseKeys reads a JWKS. Keys that cannot be used are left out: symmetric and private ones, those for encryption,
// and those of kinds that are unknown here.
func parseKeys(text string) (*keySet, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, errors.New("this is not a JWKS: write {\"keys\": […]}")
	}
	set := &keySet{text: text}
	for _, one := range raw.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(one, &k) == nil && usable(&k) && len(set.keys) < maxIssuerKeys {
			set.keys = append(set.keys, k)
		}
	}
	if len(set.keys) == 0 {
		return nil, errors.New("the JWKS has no public key for signatures by RSA, of at least 2,048 bits, by ECDSA " +
			"or by Ed25519")
	}
	return set, nil
}

func usable(k *jose.JSONWebKey) bool {
	if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// verify returns what was signed, if one of the keys did.
func (s *keySet) verify(jws *jose.JSONWebSignature) (payload []byte, ok bool) {
	header := jws.Signatures[0].Header
	tries := 0
	for i := range s.keys {
		k := &s.keys[i]
		if header.KeyID != "" && k.KeyID != "" && k.KeyID != header.KeyID ||
			k.Algorithm != "" && k.Algorithm != header.Algorithm {
			continue
		}
		if tries++; tries > maxTries {
			break
		}
		if payload, err := jws.Verify(k.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// A keySource has the keys of an issuer.
type keySource interface {
	// current returns the keys as far as they are known; nil: they are not, or have to be looked up again.
	current(now time.Time) *keySet
	// verify returns what was signed, and by which keys. The error is a *Refusal.
	verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, *keySet, error)
}

// fixed are keys that the policy has.
type fixed struct{ set *keySet }

func (f fixed) current(time.Time) *keySet { return f.set }

func (f fixed) verify(_ context.Context, jws *jose.JSONWebSignature) ([]byte, *keySet, error) {
	if f.set != nil {
		if payload, ok := f.set.verify(jws); ok {
			return payload, f.set, nil
		}
	}
	return nil, nil, errSignature
}

var errSignature = refuse(Signature, "the signature of the JWT is not one of its issuer's: get another one")

// A verification is an oidc.KeySet for one JWT, which remembers what it found.
type verification struct {
	issuer  *issuer
	keys    keySource // of the issuer, or a part of it
	payload []byte
	set     *keySet
	err     error
}

// VerifySignature returns what was signed.
func (v *verification) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	var allowed []jose.SignatureAlgorithm
	for _, a := range algorithms {
		allowed = append(allowed, jose.SignatureAlgorithm(a))
	}
	jws, err := jose.ParseSignedCompact(jwt, allowed)
	if err != nil || len(jws.Signatures) != 1 {
		v.err = refuse(Malformed, "the JWT cannot be read: get another one")
		return nil, v.err
	}
	v.payload, v.set, v.err = v.keys.verify(ctx, jws)
	return slices.Clone(v.payload), v.err
}

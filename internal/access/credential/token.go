package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// tokenPrefix begins every token of ours, so that people and scanners for leaked secrets know one when they see it.
const tokenPrefix = "lh_"

const (
	tokenBytes = 32
	tokenSize  = len(tokenPrefix) + (tokenBytes*8+5)/6
)

// NewToken returns the secret of a new token, which is shown once, and its hash, which is kept.
func NewToken() (secret, hash string) {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, Hash(secret)
}

// Hash returns what is kept of a secret. It needs no salt, and no work factor: a secret has 256 random bits.
//
// Secrets are found by their hashes and never compared: how long that takes tells something about hashes, from
// which nobody gets to a secret.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return string(sum[:])
}

// isToken reports whether a secret looks like a token of ours.
func isToken(secret string) bool {
	return len(secret) == tokenSize && strings.HasPrefix(secret, tokenPrefix)
}

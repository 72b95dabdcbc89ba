package document

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core/access"
)

// maxTokenTTL is as long as anybody could mean.
const maxTokenTTL = 10 * 366 * 24 * time.Hour

// NewToken makes a token of a request, and its secret if the caller did not. by is who was proven to ask, and key the
// name by which the request can be sent again, if it has one.
func NewToken(r *v1.TokenRequest, by, key string, now time.Time) (token *access.Token, secret string, err error) {
	token = &access.Token{ID: tokenID(r.ID, by, key), Principal: r.Principal, Groups: r.Groups,
		Description: r.Description, CreatedWall: now.UnixNano(), CreatedBy: by}
	hash := r.Hash
	if hash == "" {
		secret, hash = v1.NewSecret()
	}
	if token.Hash, err = Hash(hash); err != nil {
		return nil, "", err
	}
	if r.TTL < 0 || time.Duration(r.TTL) > maxTokenTTL {
		return nil, "", fmt.Errorf("ttl is %v: give a time up to %v, or none for a token that never ends", r.TTL,
			v1.Duration(maxTokenTTL))
	}
	if r.TTL > 0 {
		token.ExpiresWall = now.Add(time.Duration(r.TTL)).UnixNano()
	}
	items := access.Items{Tokens: []*access.Token{token}}
	return token, secret, items.Check()
}

// tokenID returns the id of a new token: the caller's, one that is made of the key by which the request can be sent
// again, or any.
func tokenID(given, by, key string) string {
	if given != "" {
		return given
	}
	seed, _ := v1.NewSecret()
	if key != "" {
		seed = by + "\x00" + key
	}
	sum := sha256.Sum256([]byte(seed))
	return "t-" + hex.EncodeToString(sum[:6])
}

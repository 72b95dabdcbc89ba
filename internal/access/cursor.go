package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
)

// A page may end at a name that the asker must not see: the next one goes on there. The name is then sealed, for this
// asker. The key follows from the hash of a token, which is the same on all servers, and which nobody sees: so any
// server can open what another one sealed. After the token was revoked it cannot be opened, and the list begins again.

// sealed begins what is sealed. It is after every name that is valid UTF-8.
const sealed = "\xff\xfesealed:"

// seal returns where a list goes on as the asker is told it.
func (v *view) seal(name string, visible bool) string {
	if name == "" || visible {
		return name
	}
	key := v.key()
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(name))
	gcm := gcmOf(key)
	nonce := sum.Sum(nil)[:gcm.NonceSize()]
	return sealed + string(gcm.Seal(nonce, nonce, []byte(name), nil))
}

// open returns the name behind what seal returned; what cannot be opened is the beginning.
func (v *view) open(after string) string {
	text, is := strings.CutPrefix(after, sealed)
	if !is {
		return after
	}
	gcm := gcmOf(v.key())
	if len(text) < gcm.NonceSize() {
		return ""
	}
	name, err := gcm.Open(nil, []byte(text[:gcm.NonceSize()]), []byte(text[gcm.NonceSize():]), nil)
	if err != nil {
		return ""
	}
	return string(name)
}

func (v *view) key() []byte {
	secret := v.permit.Policy.Seed()
	if secret == "" {
		secret = ownSecret()
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte("cursor of " + v.permit.Asker.Principal))
	return sum.Sum(nil)
}

// ownSecret is for a policy without tokens: only this server can open what it sealed.
var ownSecret = sync.OnceValue(rand.Text)

func gcmOf(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return gcm
}

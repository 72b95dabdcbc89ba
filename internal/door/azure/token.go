package azure

import (
	"cmp"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/door"
)

// tokenTime is how long a token lasts. Clients get another by themselves.
const tokenTime = 30 * time.Minute

// claims is what a token says. It has the form of a JWT, since clients look inside; the
// names that are not ours are those that they look for.
type claims struct {
	Audience string `json:"aud"`
	Issuer   string `json:"iss"`
	Issued   int64  `json:"iat"`
	NotYet   int64  `json:"nbf"`
	Expires  int64  `json:"exp"`
	Client   string `json:"appid"`
	Object   string `json:"oid"`
	Subject  string `json:"sub"`
	Tenant   string `json:"tid"`
	Kind     string `json:"idtyp"`

	Account string `json:"lh_account"`
	Key     string `json:"lh_key"` // which of its keys was shown: with it goes the token
}

const tokenHeader = `{"typ":"JWT","alg":"HS256"}`

func (d *Door) issue(c claims) string {
	b, _ := json.Marshal(c)
	text := base64.RawURLEncoding.EncodeToString([]byte(tokenHeader)) + "." + base64.RawURLEncoding.EncodeToString(b)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(d.config.Accounts.TokenKey(), text))
}

// openToken reads a token of ours that is still good.
func (d *Door) openToken(token string, now time.Time) (c claims, ok bool) {
	at := strings.LastIndexByte(token, '.')
	if at < 0 || len(token) > 8192 {
		return c, false
	}
	given, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil || !hmac.Equal(given, sign(d.config.Accounts.TokenKey(), token[:at])) {
		return c, false
	}
	_, payload, _ := strings.Cut(token[:at], ".")
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(b, &c) != nil || now.Unix() >= c.Expires {
		return c, false
	}
	for _, key := range d.config.Accounts.Keys(c.Account) {
		if subtle.ConstantTimeCompare([]byte(fingerprint(key)), []byte(c.Key)) == 1 {
			return c, true
		}
	}
	return c, false
}

// fingerprint names a key without telling it.
func fingerprint(key []byte) string {
	return base64.RawURLEncoding.EncodeToString(sign(key, "leasehold azure key")[:12])
}

// checkBearer checks a token that this door gave for the key of an account, or a credential of the policy.
func (c *call) checkBearer(token string) error {
	claims, ok := c.door.openToken(strings.TrimSpace(token), time.Now())
	if !ok && c.door.backend.AccessOn() {
		// Before it is looked whether there is such an account: that is not for everybody to know.
		proof, err := c.door.backend.Login(c.r, door.Bearer)
		if err != nil {
			return c.loginFault(err)
		}
		if len(c.door.config.Accounts.Keys(c.at.Account)) > 0 {
			c.proof = proof
			return nil
		}
	}
	switch {
	case !ok:
		return cmp.Or(c.door.backend.FailedAccount(c.r), error(errInvalidAuth.with("AuthenticationErrorDetail",
			"The token is not one of this server's, or it has expired, or its key was taken away.")))
	case claims.Account != c.at.Account:
		return errPermission
	}
	return nil
}

// loginFault returns a refused login in Azure's words.
func (c *call) loginFault(err error) error {
	if door.StatusOf(err, 0) == http.StatusUnauthorized {
		return errInvalidAuth.with("AuthenticationErrorDetail", err.Error())
	}
	return err
}

package door

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The names of the cookie in which a browser keeps who has signed in to the console. A name that begins with __Host- is
// one that no other host, and nobody on an insecure way, can set for this server.
const (
	plainCookie  = "leasehold_session"
	secureCookie = "__Host-leasehold_session"
)

// The names of the cookie in which a browser keeps its sign-in while the person is at an issuer.
const (
	VisitCookie       = "leasehold_visit"
	SecureVisitCookie = "__Host-" + VisitCookie
)

// maxCookie is how long the value of a cookie can be: browsers keep 4,096 bytes, with its name and attributes.
const maxCookie = 3900

// A SignIn is what the cookie of a browser carries: a credential, which counts until a moment.
type SignIn struct {
	Secret string // a token or a JWT
	Until  time.Time
}

// Cookie returns the cookie of a sign-in. It is sent to this server alone, with requests of its own pages, and scripts
// cannot read it. secure says that the browser came by TLS. An empty SignIn takes the cookie away.
func (s SignIn) Cookie(secure bool, now time.Time) (*http.Cookie, error) {
	c := &http.Cookie{Name: plainCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1}
	if secure {
		c.Name, c.Secure = secureCookie, true
	}
	if s.Secret == "" {
		return c, nil
	}
	c.Value = strconv.FormatInt(s.Until.Unix(), 10) + "." + s.Secret
	if c.MaxAge = int(s.Until.Sub(now).Seconds()); c.MaxAge <= 0 {
		c.MaxAge = -1
	}
	if len(c.Value) > maxCookie {
		return nil, Invalid("the credential has %d bytes, and a browser keeps at most %d: sign in with a token, which "+
			"leasehold access token create makes", len(s.Secret), maxCookie)
	}
	return c, nil
}

// SignedIn returns what the cookie of a request carries. It counts for nothing in a request that a page of another
// origin has sent: browsers send cookies to every port of a host, whichever port the page is from.
func (b *Backend) SignedIn(r *http.Request) (SignIn, bool) {
	if len(r.Header["Cookie"]) == 0 || !sameOrigin(r) { // as nearly always: programs send none
		return SignIn{}, false
	}
	name := plainCookie
	if r.TLS != nil {
		name = secureCookie
	}
	found := r.CookiesNamed(name)
	if r.TLS == nil && len(found) == 0 {
		found = r.CookiesNamed(secureCookie) // a proxy in front of this server speaks TLS
	}
	if len(found) != 1 {
		return SignIn{}, false // of several, one may be somebody else's
	}
	until, secret, _ := strings.Cut(found[0].Value, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	s := SignIn{Secret: secret, Until: time.Unix(seconds, 0)}
	return s, err == nil && secret != "" && b.Now().Before(s.Until)
}

// Now returns the time by which credentials end.
func (b *Backend) Now() time.Time { return b.login.Now() }

// sameOrigin reports whether a request was sent by a page of this server, or by a person who typed its address.
// Browsers say so themselves, to servers that they reach in a secure way; to others they tell the origin of every
// request that could change something.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

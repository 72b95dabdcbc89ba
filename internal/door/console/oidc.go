package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/door"
)

// People sign in with an issuer by the authorization code flow. The browser is sent there by a page of this server, and
// comes back from another site, so what has to be remembered meanwhile is in a cookie that is Lax and not Strict. It is
// in no memory of the server: the browser may come back to another one of the cluster.

// oidcPath is where a sign-in with an issuer begins. Below it each issuer has a path of its own to come back to, so
// that the code of one cannot be taken for that of another.
const oidcPath = "/console/oidc"

const (
	visitTime = 10 * time.Minute // for a person to sign in
	maxTo     = 2000             // bytes of the address to go to afterwards
)

// A visit is what the cookie of a browser remembers while a person is at an issuer.
type visit struct {
	Issuer   string `json:"issuer"`
	Redirect string `json:"redirect"` // the address to come back to, as the issuer was told it
	To       string `json:"to"`       // the page to show then
	Secret   []byte `json:"secret"`   // nobody else knows it; state, nonce and verifier are made of it
	Until    int64  `json:"until"`    // Unix seconds
}

// derive returns one of the values that only this browser's visit has.
func (v *visit) derive(what string) string {
	m := hmac.New(sha256.New, v.Secret)
	m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (d *Door) asCredential(v *visit) credential.Visit {
	return credential.Visit{Issuer: v.Issuer, Client: d.clients[v.Issuer], Redirect: v.Redirect,
		State: v.derive("state"), Nonce: v.derive("nonce"), Verifier: v.derive("verifier")}
}

// issuers returns those with which people can sign in, by name.
func (d *Door) issuers() (list []issuer) {
	for name, client := range d.clients {
		if d.backend.SignsIn(name, client) {
			list = append(list, issuer{Name: name})
		}
	}
	slices.SortFunc(list, func(a, b issuer) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// An issuer is one with which people can sign in.
type issuer struct {
	Name string `json:"name"`
}

// leave begins a sign-in: the answer says where the page has to send the browser.
func (d *Door) leave(w http.ResponseWriter, r *http.Request) error {
	var sent struct {
		Issuer string `json:"issuer"`
		To     string `json:"to"`
	}
	if err := d.readBody(w, r, &sent); err != nil {
		return err
	}
	if _, known := d.clients[sent.Issuer]; !known {
		return door.Invalid("nobody signs in with issuer %s here: the setting console-sign-in names those that may be "+
			"used", door.Brief(sent.Issuer))
	}
	v := &visit{Issuer: sent.Issuer, To: within(sent.To), Secret: make([]byte, 32),
		Until: d.backend.Now().Add(visitTime).Unix()}
	v.Redirect = "http://" + r.Host + oidcPath + "/" + url.PathEscape(v.Issuer)
	if byTLS(r) {
		v.Redirect = "https" + strings.TrimPrefix(v.Redirect, "http")
	}
	_, _ = rand.Read(v.Secret) // never fails
	address, err := d.backend.Authorize(r.Context(), d.asCredential(v))
	if err != nil {
		return err
	}
	http.SetCookie(w, v.cookie(visitTime))
	answer(w, http.StatusOK, "application/json", map[string]string{"location": address})
	return nil
}

// within returns the address of a page of this server; the first page if it is another one. Browsers take a backslash
// for a slash, and two slashes for another host.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > maxTo || u.Scheme != "" || u.Host != "" || u.User != nil ||
		!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, notInAPath) {
		return "/"
	}
	return to
}

// notInAPath reports whether browsers take a character for something else, or leave it out.
func notInAPath(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }

// cookie returns what the browser keeps during a visit; for no time, it is taken away.
func (v *visit) cookie(lasts time.Duration) *http.Cookie {
	c := &http.Cookie{Name: door.VisitCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: -1}
	if v.secure() {
		c.Name, c.Secure = door.SecureVisitCookie, true
	}
	if lasts > 0 {
		text, _ := json.Marshal(v) // of types that always can be
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(text), int(lasts.Seconds())
	}
	return c
}

func (v *visit) secure() bool { return strings.HasPrefix(v.Redirect, "https://") }

// visitOf returns what a browser remembers of the visit that it comes back from.
func (d *Door) visitOf(r *http.Request) (*visit, bool) {
	found := r.CookiesNamed(door.SecureVisitCookie)
	if r.TLS == nil && len(found) == 0 {
		found = r.CookiesNamed(door.VisitCookie)
	}
	if len(found) != 1 {
		return nil, false // of several, one may be somebody else's
	}
	text, err := base64.RawURLEncoding.DecodeString(found[0].Value)
	v := &visit{}
	if err != nil || json.Unmarshal(text, v) != nil || len(v.Secret) != 32 {
		return nil, false
	}
	state := r.URL.Query()["state"]
	good := len(state) == 1 && hmac.Equal([]byte(state[0]), []byte(v.derive("state"))) &&
		v.Issuer == r.PathValue("issuer") && d.backend.Now().Unix() < v.Until &&
		v.secure() == (found[0].Name == door.SecureVisitCookie)
	return v, good
}

// Why a sign-in failed, as the page is told it. It is a word and no text, since anybody can make a link to that page.
const (
	failedVisit   = "visit"   // it did not begin in this browser, or too long ago
	failedPerson  = "person"  // the issuer did not let the person in
	failedProof   = "proof"   // what the issuer says is not believed here
	failedSlowed  = "slowed"  // too many failed
	failedIssuer  = "issuer"  // it cannot be asked
	failedTooLong = "toolong" // a browser cannot keep the ID token
)

// comeBack ends a sign-in: the browser comes from the issuer, with a code.
func (d *Door) comeBack(w http.ResponseWriter, r *http.Request) error {
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		wrongMethod(http.MethodGet)(w, r)
		return nil
	}
	v, good := d.visitOf(r)
	if !good {
		return d.notIn(w, r, &visit{To: "/"}, failedVisit, nil)
	}
	http.SetCookie(w, v.cookie(0)) // it is good once
	q := r.URL.Query()
	if len(q["code"]) != 1 || q.Has("error") {
		return d.notIn(w, r, v, failedPerson, nil)
	}
	jwt, proof, err := d.backend.Redeem(r.Context(), d.asCredential(v),
		credential.Return{Code: q.Get("code"), Issuer: q.Get("iss"), From: r.RemoteAddr})
	if err != nil {
		return d.notIn(w, r, v, failureOf(err), err)
	}
	if proof != nil { // otherwise access has been turned off
		s := sessionOf(proof, d.backend.Now().Add(longest).Truncate(time.Second))
		cookie, err := door.SignIn{Secret: jwt, Until: *s.Until}.Cookie(v.secure(), d.backend.Now())
		if err != nil {
			return d.notIn(w, r, v, failedTooLong, err)
		}
		http.SetCookie(w, cookie)
	}
	goTo(w, within(v.To))
	return nil
}

// notIn sends the browser to the page on which one signs in, with why that failed.
func (d *Door) notIn(w http.ResponseWriter, r *http.Request, v *visit, why string, err error) error {
	if err != nil {
		d.note(r, err)
		d.backend.Log().Warn("somebody could not sign in with an issuer", "issuer", v.Issuer, "err", err)
	}
	goTo(w, "/signin?"+url.Values{"failed": {why}, "to": {within(v.To)}}.Encode())
	return err
}

func goTo(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// failureOf returns what the page is told of an error.
func failureOf(err error) string {
	var refused *credential.Refusal
	if !errors.As(err, &refused) {
		return failedIssuer
	}
	switch refused.Reason {
	case credential.Unreachable:
		return failedIssuer
	case credential.Slowed:
		return failedSlowed
	case credential.Code:
		return failedVisit
	}
	return failedProof
}

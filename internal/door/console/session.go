package console

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// sessionPath is where people sign in and out, and where the page asks who has.
const sessionPath = "/console/session"

// The verbs are what the metrics call that is done here.
const (
	verbSession  = "session"
	verbSignIn   = "sign-in"
	verbSignOut  = "sign-out"
	verbLeave    = "leave-for-issuer"
	verbComeBack = "come-back-from-issuer"
)

var verbs = []string{verbSession, verbSignIn, verbSignOut, verbLeave, verbComeBack}

// longest is how long nobody has to sign in again. A person who leaves a browser open is not there for ever.
const longest = 8 * time.Hour

// A session is who uses the console.
type session struct {
	Access     bool       `json:"access"` // there are rules who may do what; otherwise nobody signs in
	Principal  string     `json:"principal,omitempty"`
	Groups     []string   `json:"groups,omitempty"`
	Credential string     `json:"credential,omitempty"` // its kind
	Until      *time.Time `json:"until,omitempty"`      // absent: it does not end by itself
	Issuers    []issuer   `json:"issuers,omitempty"`    // with which people can sign in
	Problem    string     `json:"problem,omitempty"`    // why what the browser has kept no longer counts
}

// accounted answers with a problem if there is one, and counts the request.
func (d *Door) accounted(verb string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		err := serve(w, r)
		if err != nil && verb != verbComeBack { // there the browser has been sent on
			refuse(w, r, err)
		}
		d.verbs[verb].Done(r.Context(), telemetry.Outcome{Err: err, Took: time.Since(began),
			Expected: err != nil && d.backend.Expected(r)})
	}
}

// session says who sends the request, if anybody has signed in.
func (d *Door) session(w http.ResponseWriter, r *http.Request) error {
	s, err := d.who(w, r)
	if err == nil {
		if s.Access {
			s.Issuers = d.issuers()
		}
		answer(w, http.StatusOK, "application/json", s)
	}
	return err
}

// who returns the session of a request. A cookie that proves nothing any more is taken away.
func (d *Door) who(w http.ResponseWriter, r *http.Request) (session, error) {
	if !d.backend.AccessOn() {
		return session{}, nil
	}
	kept, signedIn := d.backend.SignedIn(r)
	proof, err := d.backend.Login(r, door.Bearer)
	if err == nil {
		return sessionOf(proof, kept.Until), nil
	}
	var refused *credential.Refusal
	if !errors.As(err, &refused) || refused.Reason == credential.Unreachable || refused.Reason == credential.Slowed {
		return session{}, err
	}
	s := session{Access: true}
	if signedIn {
		s.Problem = refused.Message
		d.forget(w)
	}
	return s, nil
}

// sessionOf is the session of somebody who was proven; nil: access is off.
func sessionOf(proof *credential.Proof, until time.Time) session {
	if proof == nil {
		return session{}
	}
	s := session{Access: true, Principal: proof.Asker.Principal, Groups: proof.Asker.Groups,
		Credential: string(proof.Kind)}
	if !proof.Expires.IsZero() && (until.IsZero() || proof.Expires.Before(until)) {
		until = proof.Expires
	}
	if !until.IsZero() {
		until = until.UTC()
		s.Until = &until
	}
	return s
}

// signIn takes a credential, and has the browser keep it if it proves who sends it.
func (d *Door) signIn(w http.ResponseWriter, r *http.Request) error {
	secret, err := d.readToken(w, r)
	if err != nil {
		return err
	}
	s, err := d.admit(w, r, secret)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, "application/json", s)
	return nil
}

// admit sets the cookie of who has shown a credential. Failures are slowed down by address, as at every door.
func (d *Door) admit(w http.ResponseWriter, r *http.Request, secret string) (session, error) {
	if !d.backend.AccessOn() {
		return session{}, nil
	}
	proof, err := d.backend.Prove(r.Context(), credential.Shown{Secret: secret, From: r.RemoteAddr})
	if err != nil {
		d.note(r, err)
		return session{}, err
	}
	now := d.backend.Now()
	s := sessionOf(proof, now.Add(longest).Truncate(time.Second))
	if proof == nil {
		return s, nil
	}
	return s, d.setCookie(w, r, door.SignIn{Secret: secret, Until: *s.Until})
}

// note puts a failed login in the journal.
func (d *Door) note(r *http.Request, err error) {
	if errors.Is(err, leasehold.ErrDenied) && !door.Anonymous(err) {
		d.backend.Refused(audit.Refusal{Origin: leasehold.Origin{Address: r.RemoteAddr, Door: doorName},
			Namespace: leasehold.DefaultNamespace, Verb: audit.Login, Reason: err.Error()})
	}
}

// signOut takes the cookie away. The credential itself stays good: to end that is an admin's matter.
func (d *Door) signOut(w http.ResponseWriter, _ *http.Request) error {
	d.forget(w)
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) setCookie(w http.ResponseWriter, r *http.Request, s door.SignIn) error {
	cookie, err := s.Cookie(byTLS(r), d.backend.Now())
	if err == nil {
		http.SetCookie(w, cookie)
	}
	return err
}

// forget takes the cookie away, by whichever way the browser got it.
func (d *Door) forget(w http.ResponseWriter) {
	for _, secure := range []bool{false, true} {
		cookie, _ := door.SignIn{}.Cookie(secure, d.backend.Now()) // fails only for one that is too long
		http.SetCookie(w, cookie)
	}
}

// byTLS reports whether the browser came by TLS, to this server or to a proxy in front of it.
func byTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// maxBody is how long a request to sign in can be.
const maxBody = 16 << 10

// readToken reads the body of a request to sign in with a token.
func (d *Door) readToken(w http.ResponseWriter, r *http.Request) (string, error) {
	var sent struct {
		Token string `json:"token"`
	}
	if err := d.readBody(w, r, &sent); err != nil {
		return "", err
	}
	if sent.Token = strings.TrimSpace(sent.Token); sent.Token == "" {
		return "", door.Invalid(`send {"token": "…"}, with a token of this server or a JWT of an issuer that it trusts`)
	}
	return sent.Token, nil
}

// readBody reads a body that is JSON.
func (d *Door) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return door.Invalidly(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json")
	}
	body, err := d.backend.ReadStranger(w, r, maxBody)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return door.Invalidly(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	case errors.Is(err, leasehold.ErrLimited):
		return err
	case err != nil:
		return door.Invalid("the body cannot be read: %v", err)
	case json.Unmarshal(body, into) != nil:
		return door.Invalid("the body is not a JSON object with texts")
	}
	return nil
}

package credential

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/socket"
)

// A Client is this server as an issuer knows it, when it signs people in who use a browser.
type Client struct {
	ID     string
	Secret string // empty: the issuer knows it by its address alone
	Scopes []string
}

// A Visit is one way of a browser to an issuer and back, by the authorization code flow of OpenID Connect, with PKCE.
type Visit struct {
	Issuer   string // its name in the policy
	Client   Client
	Redirect string // where the issuer sends the browser to afterwards; no other issuer has the same
	State    string // that the browser brings back
	Nonce    string // that the issuer puts into the ID token
	Verifier string // whose hash the issuer is told at first, and itself at the end
}

// A Return is what a browser brings back from an issuer.
type Return struct {
	Code   string
	Issuer string // who the issuer says it is (RFC 9207); may be empty
	From   string // the address of the browser
}

// places are where an issuer signs people in, as it says itself.
type places struct {
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Named     bool     `json:"authorization_response_iss_parameter_supported"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
}

// maxRedeeming is how many codes are redeemed at a time.
const maxRedeeming = 32

// SignsIn reports whether people can sign in with an issuer of the policy: its keys are discovered, and its ID tokens
// for the client are believed.
func (l *Login) SignsIn(issuer string, client Client) bool {
	_, _, err := l.signer(issuer, client)
	return err == nil
}

// signer returns an issuer that signs people in, and where it says how.
func (l *Login) signer(name string, client Client) (*access.Issuer, *remote, error) {
	k := l.policies.here()
	if k.policy == nil {
		return nil, nil, refuse(Issuer, "access is off: nobody has to sign in")
	}
	i, ok := k.policy.Issuer(name)
	if !ok {
		return nil, nil, refuse(Issuer, "there is no issuer "+name+": an admin can add it with leasehold "+
			"access issuer set")
	}
	if !slices.Contains(i.Audiences, client.ID) {
		return nil, nil, refuse(Audience, fmt.Sprintf("issuer %s does not have %s, the client of the console, among "+
			"its audiences: an admin can add it", name, client.ID))
	}
	r, ok := k.keysOf(i).(*remote)
	if !ok {
		return nil, nil, refuse(Issuer, "the keys of issuer "+name+" are part of the rules, so it is never asked: "+
			"sign in with a token")
	}
	return i, r, nil
}

// Authorize returns the address at which an issuer asks a person who they are.
func (l *Login) Authorize(ctx context.Context, v Visit) (string, error) {
	_, r, err := l.signer(v.Issuer, v.Client)
	if err != nil {
		return "", l.refused(err)
	}
	at, err := r.places(ctx)
	if err != nil {
		return "", l.refused(err)
	}
	u, err := url.Parse(at.Authorize)
	if err != nil || !safe(u) {
		return "", l.refused(refuse(Unreachable, "issuer "+v.Issuer+" signs nobody in: it names no address for it "+
			"that begins with https"))
	}
	challenge := sha256.Sum256([]byte(v.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": v.Client.ID, "redirect_uri": v.Redirect, "state": v.State,
		"nonce": v.Nonce, "scope": strings.Join(v.Client.Scopes, " "),
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Redeem exchanges the code of a browser that came back for an ID token, and returns it with what it proves. Failures
// are slowed down by address.
func (l *Login) Redeem(ctx context.Context, v Visit, back Return) (jwt string, p *Proof, err error) {
	from := socket.Network(back.From)
	if err := l.enter(from); err != nil {
		return "", nil, l.refused(err)
	}
	jwt, p, err = l.redeem(ctx, v, back)
	var r *Refusal
	if err == nil || !errors.As(err, &r) || r.Reason == Unreachable {
		l.slow.leave(from)
	}
	return jwt, p, err
}

func (l *Login) redeem(ctx context.Context, v Visit, back Return) (string, *Proof, error) {
	i, r, err := l.signer(v.Issuer, v.Client)
	if err != nil {
		return "", nil, l.refused(err)
	}
	at, err := r.places(ctx)
	if err != nil {
		return "", nil, l.refused(err)
	}
	// The code of one issuer must not be told to another one, to which a browser can be sent in between.
	if back.Issuer != i.URL && (back.Issuer != "" || at.Named) {
		return "", nil, l.refused(refuse(Issuer, "the browser came back from another issuer than "+v.Issuer))
	}
	jwt, err := l.exchange(ctx, at, v, back.Code)
	if err != nil {
		return "", nil, l.refused(err)
	}
	p, err := l.Check(ctx, Shown{Secret: jwt, From: back.From})
	if err != nil || p == nil {
		return "", nil, err
	}
	if err := v.check(jwt, i); err != nil {
		return "", nil, l.refused(err)
	}
	return jwt, p, nil
}

// check refuses an ID token, whose signature is good, that is not the one of this visit.
func (v *Visit) check(jwt string, i *access.Issuer) error {
	_, body, _ := strings.Cut(jwt, ".")
	body, _, _ = strings.Cut(body, ".")
	var payload json.RawMessage
	if err := unpack(body, &payload); err != nil {
		return refuse(Malformed, "the ID token cannot be read")
	}
	c, err := readClaims(payload)
	if err != nil {
		return err
	}
	is := func(claim, value string) bool { return len(c[claim]) == 1 && c[claim][0] == value }
	switch {
	case !is("iss", i.URL):
		return refuse(Issuer, "the ID token is one of another issuer than "+i.Name)
	case !slices.Contains(c["aud"], v.Client.ID) || len(c["azp"]) > 0 && !is("azp", v.Client.ID):
		return refuse(Audience, "the ID token of issuer "+i.Name+" is for another client")
	case len(c["nonce"]) != 1 || subtle.ConstantTimeCompare([]byte(c["nonce"][0]), []byte(v.Nonce)) != 1:
		return refuse(Code, "the ID token of issuer "+i.Name+" is for another sign-in: begin again")
	}
	return nil
}

// exchange redeems a code at the issuer.
func (l *Login) exchange(ctx context.Context, at *places, v Visit, code string) (string, error) {
	select {
	case l.redeeming <- struct{}{}:
		defer func() { <-l.redeeming }()
	default:
		return "", &Refusal{Reason: Unreachable, Wait: firstPause, Message: "too many sign in at the moment: try again"}
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {v.Redirect},
		"client_id": {v.Client.ID}, "code_verifier": {v.Verifier}}
	basic := len(at.Methods) == 0 || slices.Contains(at.Methods, "client_secret_basic")
	if v.Client.Secret != "" && !basic {
		form.Set("client_secret", v.Client.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", unanswered(v.Issuer)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if v.Client.Secret != "" && basic {
		r.SetBasicAuth(url.QueryEscape(v.Client.ID), url.QueryEscape(v.Client.Secret))
	}
	asks := *l.client
	asks.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := asks.Do(r)
	if err != nil {
		l.config.Log.Warn("an issuer cannot be asked for an ID token", "issuer", v.Issuer, "err", cut(err.Error()))
		return "", unanswered(v.Issuer)
	}
	defer answer.Body.Close()
	return l.idToken(v.Issuer, answer)
}

// idToken reads what an issuer answers to a code.
func (l *Login) idToken(issuer string, answer *http.Response) (string, error) {
	var got struct {
		ID          string `json:"id_token"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", unanswered(issuer)
	}
	bad := json.Unmarshal(text, &got)
	switch {
	case answer.StatusCode == http.StatusOK && bad == nil && got.ID != "":
		return got.ID, nil
	case answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests:
		return "", unanswered(issuer)
	}
	l.config.Log.Warn("an issuer gives no ID token", "issuer", issuer, "status", answer.StatusCode,
		"error", cut(got.Error), "description", cut(got.Description))
	return "", refuse(Code, "issuer "+issuer+" did not accept the code that the browser brought back: begin again; if "+
		"it lasts, the server's log says why")
}

func unanswered(issuer string) error {
	return &Refusal{Reason: Unreachable, Wait: firstPause, Message: "issuer " + issuer + " cannot be asked: try " +
		"again in a moment; if it lasts, the server's log says why"}
}

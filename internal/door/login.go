package door

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
)

// newLogin returns the login of all doors to an engine.
func (b *Backend) newLogin(e engine.Engine) *credential.Login {
	return credential.New(credential.Config{
		Local: func() *access.Policy { return engine.PolicyOf(e) },
		Fresh: func(ctx context.Context) (p *access.Policy, err error) {
			err = e.Read(ctx, func(v core.View) { p = v.Policy() })
			return p, err
		},
		Now: b.options.Now, Client: b.options.Issuers, Log: b.Log(),
		Used:    (&uses{engine: e}).note,
		Refused: func(r credential.Reason) { b.Metrics().LoginsRefused.WithLabelValues(string(r)).Inc() },
	})
}

// AccessOn reports whether there is a policy that says who may do what.
func (b *Backend) AccessOn() bool { return b.login.On() }

// How the clients of a door show a secret over HTTP.
const (
	Bearer = iota // in the header Authorization
	Basic         // or as a password, with any user name
)

// Login returns who sends a request: by its header Authorization, or else by who has signed in to the console, if the
// door takes bearer tokens alone, or else by the certificate of its connection. It is nil if access is off.
func (b *Backend) Login(r *http.Request, how int) (*credential.Proof, error) {
	if !b.login.On() {
		listen.ProvenIn(r.Context())
		return nil, nil
	}
	secret, err := secretOf(r, how)
	if err != nil {
		return nil, err
	}
	if secret == "" && how == Bearer {
		if s, ok := b.SignedIn(r); ok {
			secret = s.Secret
		}
	}
	return b.Prove(r.Context(), shownBy(r, secret))
}

// shownBy returns what a request shows, with a secret that was found in it.
func shownBy(r *http.Request, secret string) credential.Shown {
	shown := credential.Shown{Secret: secret, From: r.RemoteAddr}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		shown.Certificate = r.TLS.VerifiedChains[0][0]
	}
	return shown
}

// Prove returns who shows a credential, wherever that was. It is nil if access is off. The context of a request over
// HTTP leads to its connection, which is kept then.
func (b *Backend) Prove(ctx context.Context, s credential.Shown) (*credential.Proof, error) {
	p, err := b.login.Check(ctx, s)
	if err == nil {
		listen.ProvenIn(ctx)
	}
	return p, coded(err)
}

// SignsIn reports whether people can sign in with an issuer, of which this server is a client.
func (b *Backend) SignsIn(issuer string, c credential.Client) bool { return b.login.SignsIn(issuer, c) }

// Authorize returns the address at which an issuer asks the person at a browser who they are.
func (b *Backend) Authorize(ctx context.Context, v credential.Visit) (string, error) {
	address, err := b.login.Authorize(ctx, v)
	return address, coded(err)
}

// Redeem returns the ID token for what a browser brought back from an issuer, and what it proves.
func (b *Backend) Redeem(ctx context.Context, v credential.Visit, back credential.Return) (string,
	*credential.Proof, error) {
	jwt, proof, err := b.login.Redeem(ctx, v, back)
	return jwt, proof, coded(err)
}

// coded gives a refusal its code.
func coded(err error) error {
	var r *credential.Refusal
	if errors.As(err, &r) {
		return &loginError{r}
	}
	return err
}

// ProveAccount returns the proof of a caller who has shown the key of an Azure account. It is nil if access is off.
func (b *Backend) ProveAccount(ctx context.Context, account string) *credential.Proof {
	listen.ProvenIn(ctx)
	return b.login.Account(account)
}

// FailedAccount counts a proof for an Azure account that was wrong. The error is what to answer instead if too many
// were that came from the same address.
func (b *Backend) FailedAccount(r *http.Request) error {
	return coded(b.login.Failed(r.RemoteAddr, credential.Signature))
}

// secretOf returns the token or the JWT of a request; empty: there is none.
func secretOf(r *http.Request, how int) (string, error) {
	values := r.Header["Authorization"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", malformed("the request has several headers Authorization: send one")
	}
	scheme, value, _ := strings.Cut(values[0], " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(value), nil
	}
	if how != Basic {
		return "", malformed("the header Authorization is not understood: send \"Authorization: Bearer TOKEN\"")
	}
	_, password, ok := r.BasicAuth()
	if !ok {
		return "", malformed("the header Authorization is not understood: send any user name, and a token as password")
	}
	return password, nil
}

func malformed(message string) error {
	return &loginError{&credential.Refusal{Reason: credential.Malformed, Message: message}}
}

// A loginError is a refusal with its code.
type loginError struct{ *credential.Refusal }

// Unwrap returns the refusal, and how doors tell it.
func (e *loginError) Unwrap() []error {
	code, status := leasehold.Denied, http.StatusUnauthorized
	switch e.Reason {
	case credential.Slowed:
		code, status = leasehold.Limited, http.StatusTooManyRequests
	case credential.Unreachable:
		code, status = leasehold.Unavailable, http.StatusServiceUnavailable
	}
	return []error{&Fault{Err: &leasehold.Error{Code: code, Message: e.Message}, Status: status}, e.Refusal}
}

// Anonymous reports whether an error is the refusal of somebody who showed nothing. It is not worth a line in the
// journal: it says nothing about anybody, and anybody who finds the port could fill the journal with it.
func Anonymous(err error) bool {
	var r *credential.Refusal
	return errors.As(err, &r) && r.Reason == credential.Missing
}

// challenge says how to log in, to somebody whose credential is missing or was refused.
func challenge(h http.Header, err error) {
	if h.Get("WWW-Authenticate") != "" {
		return
	}
	value := `Bearer realm="leasehold"`
	if !Anonymous(err) {
		value += `, error="invalid_token"`
	}
	h.Set("WWW-Authenticate", value)
}

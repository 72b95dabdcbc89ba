package credential

import (
	"crypto/x509"
	"time"

	"github.com/leasehold/leasehold/internal/core/access"
)

// A Kind is what proved who asks.
type Kind string

// The kinds of credentials.
const (
	Token       Kind = "token"
	JWT         Kind = "jwt"
	Certificate Kind = "certificate"
	Azure       Kind = "azure"
)

// Shown is what a request shows, and where it comes from.
type Shown struct {
	Secret      string            // a token of ours or a JWT
	Certificate *x509.Certificate // of a client, verified by the handshake; only used without a secret
	From        string            // host:port, or just the host
}

func (s *Shown) nothing() bool { return s.Secret == "" && s.Certificate == nil }

// A Proof is who asks, how that was proven, and until when. It is never changed.
type Proof struct {
	Asker   *access.Asker
	Kind    Kind
	Expires time.Time // zero: never

	// By what of the policy it was proven: see Login.Still.
	token       *access.Token
	issuer      *access.Issuer
	certificate *x509.Certificate
}

// Expired reports whether the credential has ended.
func (p *Proof) Expired(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// A Reason is why a credential was refused, as a metric counts it.
type Reason string

// The reasons.
const (
	Missing     Reason = "missing"     // nothing was shown
	Malformed   Reason = "malformed"   // it is neither a token nor a JWT
	Unknown     Reason = "unknown"     // a token that does not exist, or was revoked
	Expired     Reason = "expired"     // it has ended
	NotYet      Reason = "not-yet"     // it is not valid yet
	Issuer      Reason = "issuer"      // nobody trusts the issuer
	Audience    Reason = "audience"    // it is for somebody else
	Algorithm   Reason = "algorithm"   // it is not signed, or not by a key pair
	Signature   Reason = "signature"   // no key of the issuer made it
	Claims      Reason = "claims"      // it does not say who it is for, or says too much
	Unmapped    Reason = "unmapped"    // a certificate that no rule is for
	Slowed      Reason = "slowed"      // too many failed from this address
	Unreachable Reason = "unreachable" // the issuer's keys cannot be fetched
	Code        Reason = "code"        // what a browser brought back from an issuer is not what it was sent for
)

// Reasons has all of them.
var Reasons = []Reason{Missing, Malformed, Unknown, Expired, NotYet, Issuer, Audience, Algorithm, Signature, Claims,
	Unmapped, Slowed, Unreachable, Code}

// A Refusal is the error of a login that failed.
type Refusal struct {
	Reason  Reason
	Message string
	Wait    time.Duration // after which to try again; 0: that does not help
}

// Error returns the message, which has no part of a secret.
func (r *Refusal) Error() string { return r.Message }

func refuse(reason Reason, message string) error { return &Refusal{Reason: reason, Message: message} }

// dated reports whether a newer policy may say something else.
func (r *Refusal) dated() bool {
	switch r.Reason {
	case Unknown, Expired, Issuer, Audience, Unmapped:
		return true
	}
	return false
}

package door

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Visitor is who is at the other end of a connection that carries many commands. What it has shown is judged anew
// when who may do what was changed, when it expires, and once a second: in between, that costs a look at the clock.
// It belongs to one goroutine.
type Visitor struct {
	backend *Backend
	shown   credential.Shown

	policy  *access.Policy // by which it was judged
	proof   *credential.Proof
	refused error
	judged  time.Time
}

// judgedFor is for how long a judgement holds while no policy changes: the keys of an issuer may.
const judgedFor = time.Second

// Visit returns the visitor of a connection. Its certificate counts until it shows something else.
func (b *Backend) Visit(c net.Conn) *Visitor {
	v := &Visitor{backend: b, shown: credential.Shown{From: c.RemoteAddr().String()}}
	if state := TLSOf(c); state != nil && len(state.VerifiedChains) > 0 {
		v.shown.Certificate = state.VerifiedChains[0][0]
	}
	return v
}

// TLSOf finds the TLS of a connection, below what others may have put around it; nil: it is plain.
func TLSOf(c net.Conn) *tls.ConnectionState {
	for c != nil {
		if t, ok := c.(*tls.Conn); ok {
			state := t.ConnectionState()
			return &state
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = below.NetConn()
	}
	return nil
}

// Address is where the visitor comes from.
func (v *Visitor) Address() string { return v.shown.From }

// Show takes a secret, and says what is wrong with it. What was shown before counts until then.
func (v *Visitor) Show(ctx context.Context, secret string) error {
	shown := v.shown
	shown.Secret = secret
	if _, err := v.backend.Prove(ctx, shown); err != nil {
		return err
	}
	v.shown, v.policy = shown, nil
	return nil
}

// Forget takes back what was shown, but for the certificate.
func (v *Visitor) Forget() { v.shown.Secret, v.policy = "", nil }

// holds reports whether the last judgement can be used again.
func (v *Visitor) holds(policy *access.Policy, now time.Time) bool {
	age := now.Sub(v.judged)
	return v.policy == policy && age >= 0 && age < judgedFor && (v.proof == nil || !v.proof.Expired(now))
}

// Known reports whether Proof answers at once. If not, it may have to ask an issuer or the other servers.
func (v *Visitor) Known() bool {
	login := v.backend.login
	policy := login.Policy()
	return policy == nil || v.holds(policy, login.Now()) || login.Knows(v.shown)
}

// Proof returns who the visitor is; nil: access is off.
func (v *Visitor) Proof(ctx context.Context) (*credential.Proof, error) {
	login := v.backend.login
	policy := login.Policy()
	if policy == nil {
		v.proof, v.policy = nil, nil
		return nil, nil
	}
	now := login.Now()
	if v.holds(policy, now) {
		return v.proof, v.refused
	}
	v.proof, v.refused = v.backend.Prove(ctx, v.shown)
	v.policy, v.judged = policy, now
	return v.proof, v.refused
}

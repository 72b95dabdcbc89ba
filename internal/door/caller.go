package door

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Caller is who asks: where the request comes from, and who was proven to send it.
type Caller struct {
	Origin leasehold.Origin
	Proof  *credential.Proof // nil: nobody was proven, or access is off
}

// WithCaller returns a context for what is done for a caller. The engine decides by who that is, and the journal keeps
// who it is and where it comes from.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return engine.WithOrigin(WithProof(ctx, c.Proof), c.origin())
}

// origin is the caller's origin, of which the actor is who was proven.
func (c *Caller) origin() leasehold.Origin {
	if c.Proof != nil {
		c.Origin.Actor = c.Proof.Asker.Principal
	}
	return c.Origin
}

// WithProof returns a context for what is done for somebody who was proven. The engine decides by who that is.
func WithProof(ctx context.Context, p *credential.Proof) context.Context {
	if p == nil {
		return ctx
	}
	return engine.WithAsker(ctx, p.Asker)
}

// Principal returns the name of who was proven; empty: nobody was.
func Principal(p *credential.Proof) string {
	if p == nil {
		return ""
	}
	return p.Asker.Principal
}

package door

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Principal is who was proven to ask. Empty: nobody was. What it may do is for access rules
// to say, which do not exist yet; until then every principal may do everything.
type Principal string

// A Caller is who asks: where the request comes from, and who sent it.
type Caller struct {
	Origin    leasehold.Origin
	Principal Principal
}

type callerKey struct{}

// WithCaller returns a context for what is done for a caller. The journal takes the origin
// from it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	if c.Principal != "" {
		ctx = context.WithValue(ctx, callerKey{}, c.Principal)
	}
	return engine.WithOrigin(ctx, c.Origin)
}

// CallerOf returns who asks. The error says what is wrong with the origin, as engine.OriginOf
// does; the origin is then empty.
func CallerOf(ctx context.Context) (Caller, error) {
	origin, err := engine.OriginOf(ctx)
	principal, _ := ctx.Value(callerKey{}).(Principal)
	return Caller{origin, principal}, err
}

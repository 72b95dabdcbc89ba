package engine

import "context"

type staleKey struct{}

// WithStale lets the reads of a context show the state as this server has it, which may lack what others were answered
// already. It asks no other server. It is for what is decided by a command later, and for a request that has read
// already: what came after that read is no older than the request.
func WithStale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// IsStale reports whether the reads of a context may be stale.
func IsStale(ctx context.Context) bool {
	stale, _ := ctx.Value(staleKey{}).(bool)
	return stale
}

// Package bridge moves a program from one store to another without a moment in which both grant. While
// some programs know only the old store, and later while some know only the new one, a program in between
// holds the resource in both. docs/stores/moving.md says in which order.
package bridge

import (
	"context"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
)

// Do holds a resource in both stores while fn runs: the old one first, in every program, so that no two
// wait for each other. The context of fn ends when either lease is lost. The pass has the larger of both
// tokens: the old one's, until the tokens of the new store are raised above it.
func Do(ctx context.Context, old, next *client.Client, resource string,
	fn func(context.Context, fence.Pass) error, options ...client.Option,
) error {
	return old.Do(ctx, resource, func(ctx context.Context, first *client.Hold) error {
		return next.Do(ctx, resource, func(ctx context.Context, second *client.Hold) error {
			return fn(ctx, larger(first.Pass(), second.Pass()))
		}, options...)
	}, options...)
}

// larger returns the pass with the larger token, or the one without: then a lease is lost.
func larger(a, b fence.Pass) fence.Pass {
	if a.Token == 0 || b.Token != 0 && a.Token > b.Token {
		return a
	}
	return b
}

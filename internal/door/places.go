package door

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/socket"
)

// Places are how many of something there may be at a time, as clients share them.
type Places struct {
	limit.Budget
	Message string // what the refused are told; with what to do
}

// NewPlaces returns places of which one client can have alone if there is no other. A message tells those who get none
// what to do.
func NewPlaces(most, alone int, message string) *Places {
	return &Places{limit.Budget{Most: most, Alone: alone}, message}
}

// Enter takes a place for the client that a context belongs to, or returns the error Limited. Call leave when it ends.
func (p *Places) Enter(ctx context.Context) (leave func(), err error) { return p.EnterWith(ctx, 1) }

// EnterWith is Enter for n places at once, or none.
func (p *Places) EnterWith(ctx context.Context, n int) (leave func(), err error) {
	client := clientOf(ctx)
	if err := p.take(client, n); err != nil {
		return nil, err
	}
	return func() { p.Give(client, n) }, nil
}

// take takes n places at once for a client, or returns the error Limited.
func (p *Places) take(client string, n int) error {
	if !p.Take(client, n) {
		return &leasehold.Error{Code: leasehold.Limited, Message: p.Message}
	}
	return nil
}

// clientOf names the client that a context belongs to: its principal, or where nobody was proven, its address.
func clientOf(ctx context.Context) string {
	if asker := engine.AskerOf(ctx); asker != nil {
		return "principal " + asker.Principal
	}
	if origin, err := engine.OriginIn(ctx); err == nil && origin != nil {
		return "address " + socket.Network(origin.Address).String()
	}
	return ""
}

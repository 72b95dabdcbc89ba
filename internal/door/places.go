package door

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/socket"
)

// Places are how many of something there may be at a time, and how clients share them. Each client leaves a part of
// what it finds free: one that is alone can have most of it, and several that take all they get still leave some for
// the next one.
type Places struct {
	Most    int    // in all
	Alone   int    // that one client may have if there is no other
	Message string // what the refused are told; with what to do

	mu   sync.Mutex // guards what follows
	used int
	by   map[string]int // by client
}

// Enter takes a place for the client that a context belongs to, or returns the error Limited. Call leave when it ends.
func (p *Places) Enter(ctx context.Context) (leave func(), err error) {
	client := clientOf(ctx)
	if err := p.take(client, 1); err != nil {
		return nil, err
	}
	return func() { p.leave(client, 1) }, nil
}

// take takes n places at once for a client, or returns the error Limited.
func (p *Places) take(client string, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A client may have up to Alone/(Most-Alone) times as many as are free.
	if (p.by[client]+n-1)*(p.Most-p.Alone) >= p.Alone*(p.Most-p.used-n+1) {
		return &leasehold.Error{Code: leasehold.Limited, Message: p.Message}
	}
	if p.by == nil {
		p.by = map[string]int{}
	}
	p.used += n
	p.by[client] += n
	return nil
}

// Now returns how many are taken.
func (p *Places) Now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

func (p *Places) leave(client string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.by[client] -= n; p.by[client] == 0 {
		delete(p.by, client)
	}
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

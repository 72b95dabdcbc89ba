package fence

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold"
)

// Memory is a guard that remembers for as long as the process lives. It takes some hundred bytes
// for each resource it saw. To guard across a restart use SQL, or another store that keeps the
// floor beside the data.
type Memory struct {
	mu    sync.Mutex // guards what follows
	gates map[string]*gate
}

// A gate is the guard of one resource.
type gate struct {
	floor  leasehold.Token
	inside map[*visit]bool
}

// A visit is one call of fn that is running.
type visit struct {
	token  leasehold.Token
	cancel context.CancelCauseFunc
	left   chan struct{}
}

// NewMemory returns a guard that has seen nothing.
func NewMemory() *Memory { return &Memory{gates: map[string]*gate{}} }

var _ Guard = (*Memory)(nil)

// Do calls fn unless the holder is late. When a newer holder comes, the contexts of older ones
// whose fn still runs end, and the newer one waits until they have returned.
func (m *Memory) Do(ctx context.Context, resource string, pass Pass, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &visit{token: pass.Token, cancel: cancel, left: make(chan struct{})}
	older, err := m.enter(resource, pass, v)
	if err != nil {
		return err
	}
	defer m.leave(resource, v)
	// Their contexts have ended, but their writes may still be under way: overlapping with them is
	// what the guard exists to prevent.
	for _, o := range older {
		select {
		case <-o.left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fn(ctx)
}

// enter admits a visit, or returns a LateError. It returns the older visits that are still inside.
func (m *Memory) enter(resource string, pass Pass, v *visit) (older []*visit, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[resource]
	if g == nil {
		g = &gate{inside: map[*visit]bool{}}
		m.gates[resource] = g
	}
	if err := pass.check(resource, g.floor); err != nil {
		return nil, err
	}
	g.floor = max(g.floor, pass.floor())
	for o := range g.inside {
		if o.token < g.floor {
			o.cancel(&LateError{resource, o.token, g.floor})
			older = append(older, o)
		}
	}
	g.inside[v] = true
	return older, nil
}

func (m *Memory) leave(resource string, v *visit) {
	m.mu.Lock()
	delete(m.gates[resource].inside, v)
	m.mu.Unlock()
	close(v.left)
}

// Floor returns the largest floor that the guard has seen of a resource.
func (m *Memory) Floor(resource string) leasehold.Token {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g := m.gates[resource]; g != nil {
		return g.floor
	}
	return 0
}

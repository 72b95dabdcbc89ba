//go:build linux

package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/examples/internal/virtual"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/leasetest"
	_ "github.com/leasehold/leasehold/store/redis"
)

const resource = "reports/nightly"

// A move is the three generations of a program, what they write to, and the server that they move to.
type move struct {
	*testing.T
	old, next *client.Client
	operator  *v1.Caller
	guard     *fence.Memory
	busy      atomic.Int32 // who believe that they hold it
}

func newMove(t *testing.T, old *client.Client) *move {
	server := leasetest.Start(t)
	return &move{T: t, old: old, next: server.Dial(t), operator: server.Inside(), guard: fence.NewMemory()}
}

// write is the work of all generations.
func (m *move) write(ctx context.Context, pass fence.Pass) error {
	if m.busy.Add(1) > 1 {
		m.Error("two hold it at the same time")
	}
	defer m.busy.Add(-1)
	return m.guard.Do(ctx, resource, pass, func(context.Context) error {
		time.Sleep(time.Millisecond)
		return nil
	})
}

func (m *move) before(ctx context.Context) error { return m.alone(ctx, m.old) }
func (m *move) after(ctx context.Context) error  { return m.alone(ctx, m.next) }

func (m *move) alone(ctx context.Context, c *client.Client) error {
	return c.Do(ctx, resource, func(ctx context.Context, h *client.Hold) error { return m.write(ctx, h.Pass()) })
}

func (m *move) between(ctx context.Context) error { return Do(ctx, m.old, m.next, resource, m.write) }

// together lets programs of some generations work at the same time.
func (m *move) together(programs ...func(context.Context) error) {
	m.Helper()
	var wg sync.WaitGroup
	for i := range 3 * len(programs) {
		wg.Go(func() {
			for range 5 {
				if err := programs[i%len(programs)](m.Context()); err != nil {
					m.Errorf("program %d: %v", i%len(programs), err)
				}
			}
		})
	}
	wg.Wait()
}

// newest returns a token of the old store that is larger than all before.
func (m *move) newest() (token leasehold.Token) {
	m.Helper()
	err := m.old.Do(m.Context(), "moving/probe", func(_ context.Context, h *client.Hold) error {
		token = h.Token()
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
	return token
}

func (m *move) raise(above leasehold.Token) {
	m.Helper()
	tokens, err := m.operator.RaiseTokens(m.Context(), v1.RaiseTokensRequest{Above: uint64(above), Reason: "moved"})
	if err != nil || !tokens.Raised {
		m.Fatalf("%+v: %v", tokens, err)
	}
}

// tell moves from beginning to end: nobody is ever refused, no two hold it, and who is late is refused.
func (m *move) tell(margin leasehold.Token) {
	late, err := m.old.Acquire(m.Context(), resource)
	if err != nil {
		m.Fatal(err)
	}
	pass := late.Pass()
	if err := errors.Join(m.write(m.Context(), pass), late.Release(m.Context())); err != nil {
		m.Fatal(err)
	}
	m.together(m.before, m.between)
	m.together(m.between)
	if err := m.after(m.Context()); !errors.Is(err, leasehold.ErrLost) {
		m.Errorf("the guard has seen larger tokens than the server grants: %v", err)
	}
	m.raise(m.newest() + margin)
	m.together(m.between, m.after)
	m.together(m.after)
	if err := m.write(m.Context(), pass); !errors.Is(err, leasehold.ErrLost) {
		m.Errorf("a holder from before the move is late: %v", err)
	}
}

func TestMoveFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { newMove(t, virtual.Open(t, "old")).tell(1000) })
}

// The tokens of Redis follow its clock: they are raised above those that it will grant for as long as
// there are bridges.
func TestMoveFromRedis(t *testing.T) {
	old, err := client.Dial(t.Context(), client.Config{
		Servers: []string{fmt.Sprintf("redis://%s?init=true", peer.StartRedis(t, peer.RedisConfig{}).Address)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Close() })
	newMove(t, old).tell(leasehold.Token(30 * 24 * time.Hour / time.Microsecond))
}

// If either lease is lost, so is the right to work, and the pass says so.
func TestEitherLossEndsTheWork(t *testing.T) {
	for _, lost := range []string{"old", "new"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMove(t, virtual.Open(t, "old"))
				var closing sync.WaitGroup
				defer closing.Wait()
				err := Do(t.Context(), m.old, m.next, resource, func(ctx context.Context, _ fence.Pass) error {
					c := map[string]*client.Client{"old": m.old, "new": m.next}[lost]
					closing.Go(func() { _ = c.Close() })
					<-ctx.Done()
					return context.Cause(ctx)
				})
				if !errors.Is(err, client.ErrLost) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
	if got := larger(fence.Pass{}, fence.Pass{Token: 7}); got.Token != 0 {
		t.Errorf("the old lease is lost, and the pass has token %d", got.Token)
	}
	if got := larger(fence.Pass{Token: 7}, fence.Pass{}); got.Token != 0 {
		t.Errorf("the new lease is lost, and the pass has token %d", got.Token)
	}
}

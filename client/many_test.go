package client

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// generous grants everything, to everybody, at once.
type generous struct {
	wire
	token    atomic.Uint64
	renewals atomic.Int64
}

func (g *generous) OpenSession(_ context.Context, r v1.SessionRequest, _ ...v1.Option) (v1.Session, error) {
	return v1.Session{ID: r.ID, RemainingMS: time.Duration(r.TTL.Duration).Milliseconds(), Interventions: new(uint64)}, nil
}

func (g *generous) RenewSession(context.Context, string) (v1.Session, error) {
	g.renewals.Add(1)
	return v1.Session{RemainingMS: 30000, Interventions: new(uint64)}, nil
}

func (g *generous) CloseSession(context.Context, string, ...v1.Option) error { return nil }

func (g *generous) Acquire(_ context.Context, r v1.AcquireRequest, _ ...v1.Option) (v1.Lease, error) {
	token := g.token.Add(1)
	return v1.Lease{Resource: r.Resource, ID: r.ID, Token: token, Floor: token, Interventions: new(uint64)}, nil
}

func (g *generous) Renew(context.Context, v1.RenewRequest) (v1.Lease, error) {
	return v1.Lease{}, leasehold.ErrDenied // it keeps no books
}

func (g *generous) Release(context.Context, v1.ReleaseRequest, ...v1.Option) error { return nil }

func (g *generous) Watch(ctx context.Context, q v1.WatchQuery) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		q.Started(v1.Hello{})
		<-ctx.Done()
		yield(v1.Event{}, ctx.Err())
	}
}

func (g *generous) CloseIdle() {}

func (g *generous) Level() int { return 0 }

// only is a single server, over a line that nothing goes through.
func only(w wire) *servers { return &servers{all: []wire{w}, lines: []*line{newLine(nil, 0)}} }

func allocated() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A hold costs little, and no goroutine of its own.
func TestTenThousandHolds(t *testing.T) {
	const n = 10000
	g := &generous{}
	c := newClient(Config{}.complete(), only(g))
	defer func() { _ = c.Close() }()
	goroutines := runtime.NumGoroutine()
	before := allocated()
	holds := make([]*Hold, n)
	for i := range holds {
		h, err := c.Acquire(t.Context(), fmt.Sprintf("queue/worker-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		holds[i] = h
	}
	bare := (allocated() - before) / n
	for _, h := range holds {
		h.Context()
	}
	each := (allocated() - before) / n
	more := runtime.NumGoroutine() - goroutines
	t.Logf("%d bytes a hold, %d with its context; %d more goroutines, %d sessions", bare, each, more, len(c.sessions))
	if each > 2048 {
		t.Errorf("a hold has %d bytes", each)
	}
	if more > 4 {
		t.Errorf("there are %d more goroutines", more)
	}
	if len(c.sessions) != 1 {
		t.Errorf("there are %d sessions", len(c.sessions))
	}
	for _, h := range holds {
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(holds)
}

// What a session can not take goes to another one of the same TTL.
func TestASecondSessionTakesTheRest(t *testing.T) {
	c := newClient(Config{}.complete(), only(&generous{}))
	defer func() { _ = c.Close() }()
	for i := range maxHolds + 1 {
		if _, err := c.Acquire(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.sessions) != 2 {
		t.Errorf("there are %d sessions", len(c.sessions))
	}
}

package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

func handsOver(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	bob := d.acquire(t.Context(), waiting(ask("r", "bob"), time.Minute), true)
	cat := d.acquire(t.Context(), waiting(ask("r", "cat"), time.Minute), true)
	if s := d.status("r"); s.Waiting != 2 || s.Queue[0].Holder != "bob" || s.Queue[1].Position != 2 {
		t.Fatalf("queue: %+v", s)
	}
	d.do(release("ann@r"))
	if err := <-bob; err != nil {
		t.Fatalf("bob: %v", err)
	}
	d.do(release("bob@r"))
	if err := <-cat; err != nil {
		t.Fatalf("cat: %v", err)
	}
}

func handsOverByTime(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	begun := time.Now()
	bob := d.acquire(t.Context(), waiting(ask("r", "bob"), time.Minute), true)
	if err := <-bob; err != nil {
		t.Fatalf("bob: %v", err)
	}
	if took := time.Since(begun); took < 10*time.Second || took > 10*time.Second+5*time.Millisecond {
		t.Fatalf("bob waited %v", took)
	}
}

func waitsNoLonger(t *testing.T, d driver) {
	c := ask("r", "ann")
	c.TTL = time.Hour
	d.do(c)
	begun := time.Now()
	err := <-d.acquire(t.Context(), waiting(ask("r", "bob"), 40*time.Second), true)
	var e *leasehold.Error
	if !errors.As(err, &e) || e.Code != leasehold.Held || e.Lease == nil || e.Lease.Holder != "ann" {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(begun); took < 40*time.Second || took > 41*time.Second {
		t.Fatalf("bob waited %v", took)
	}
}

func signsOfLife(t *testing.T, d driver) {
	const held = 5 * time.Minute // 20 times as long as a waiter stays without a sign of life
	c := ask("r", "ann")
	c.TTL = held
	d.do(c)
	bob := d.acquire(t.Context(), waiting(ask("r", "bob"), 2*held), false)
	time.Sleep(held - time.Second)
	if s := d.status("r"); s.Waiting != 1 {
		t.Fatalf("after %v: %+v", held, s)
	}
	if err := <-bob; err != nil {
		t.Fatalf("bob: %v", err)
	}
}

func withdraws(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	ctx, hangUp := context.WithCancel(t.Context())
	bob := d.acquire(ctx, waiting(ask("r", "bob"), time.Minute), false)
	hangUp()
	if err := <-bob; !errors.Is(err, leasehold.ErrUndecided) {
		t.Fatalf("bob: %v", err)
	}
	synctest.Wait()
	if s := d.status("r"); s.Waiting != 0 {
		t.Fatalf("bob still waits: %+v", s)
	}
}

func keepsProposed(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	ctx, hangUp := context.WithCancel(t.Context())
	c := waiting(ask("r", "bob"), time.Minute)
	bob := d.acquire(ctx, c, true)
	hangUp()
	<-bob
	synctest.Wait()
	if s := d.status("r"); s.Waiting != 1 {
		t.Fatalf("bob's place is gone: %+v", s)
	}
	time.Sleep(3 * time.Second)
	bob = d.acquire(t.Context(), c, true)
	if err := <-bob; err != nil {
		t.Fatalf("bob on another connection: %v", err)
	}
	// Nobody comes back for dan: his place lasts for fifteen seconds.
	ctx, hangUp = context.WithCancel(t.Context())
	dan := d.acquire(ctx, waiting(ask("r", "dan"), time.Minute), true)
	hangUp()
	<-dan
	d.do(renew("bob@r"))
	time.Sleep(9 * time.Second)
	d.do(renew("bob@r"))
	time.Sleep(6*time.Second + time.Millisecond)
	if s := d.status("r"); s.Waiting != 0 || d.holder("r") != "bob" {
		t.Fatalf("after fifteen seconds: %+v", s)
	}
}

// A readCounter is an engine that counts what is read of it.
type readCounter struct {
	engine.Engine
	reads atomic.Int64
}

func (c *readCounter) Read(ctx context.Context, fn func(core.View)) error {
	c.reads.Add(1)
	return c.Engine.Read(ctx, fn)
}

// An outcome is what an acquire came to.
type outcome struct {
	core.Answer
	err error
}

// stay asks for something that has to be waited for.
func stay(t *testing.T, e engine.Engine, c *core.Acquire) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	go func() {
		answer, err := engine.Acquire(t.Context(), e, c, true)
		done <- outcome{answer, err}
	}()
	synctest.Wait()
	return done
}

// both asks for r and q at once.
func both(holder string) *core.Acquire {
	c := waiting(ask("r", holder), time.Minute)
	c.Also = []core.Item{{Resource: "q", ID: holder + "@q"}}
	return c
}

func comesWithTheTurn(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	d.do(ask("q", "ann"))
	counter := &readCounter{Engine: d.Engine}
	bob := stay(t, counter, both("bob"))
	looked := counter.reads.Load()
	d.do(release("ann@r"))
	synctest.Wait()
	select {
	case got := <-bob:
		t.Fatalf("bob has one of two: %+v", got)
	default:
	}
	d.do(release("ann@q"))
	got := <-bob
	if got.err != nil || got.Lease == nil || len(got.Also) != 1 {
		t.Fatalf("bob: %+v", got)
	}
	if again := counter.reads.Load(); looked != 1 || again != looked {
		t.Errorf("%d reads before the grant, %d after it: want one in all", looked, again)
	}
	for i, l := range []leasehold.Lease{*got.Lease, got.Also[0]} {
		path := []string{"r", "q"}[i]
		now := d.status(path).Holders[0]
		same := l.ID == now.ID && l.Token == now.Token && l.Expires.Equal(now.Expires)
		if !same || l.ID != "bob@"+path || l.State != leasehold.Leased || l.Remaining != l.TTL {
			t.Errorf("%s was answered as %+v, and is %+v", path, l, now)
		}
	}
}

// endsAsGranted breaks a lease in the entry in which it is granted: a transaction releases it.
func endsAsGranted(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	bob := stay(t, d.Engine, waiting(ask("r", "bob"), time.Minute))
	d.do(&core.Txn{Namespace: "default", Then: []core.Op{
		{Do: core.ReleaseLease, ID: "ann@r"},
		{Do: core.ReleaseLease, ID: "bob@r"},
	}})
	if got := <-bob; !errors.Is(got.err, leasehold.ErrLost) {
		t.Fatalf("bob: %+v", got)
	}
}

func waitsTwice(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	d.do(ask("q", "ann"))
	first, second := stay(t, d.Engine, both("bob")), stay(t, d.Engine, both("bob"))
	alone := stay(t, d.Engine, waiting(ask("r", "bob"), time.Minute)) // the same id, of which it wants less
	d.do(release("ann@r"))
	d.do(release("ann@q"))
	one, two, three := <-first, <-second, <-alone
	if one.err != nil || two.err != nil || one.Lease.Token != two.Lease.Token || len(one.Also) != 1 ||
		len(two.Also) != 1 {
		t.Errorf("they got %+v and %+v", one, two)
	}
	if three.err != nil || three.Lease.Token != one.Lease.Token || len(three.Also) != 0 {
		t.Errorf("who wants less got %+v", three)
	}
	one.Lease.Holder = "spoilt"
	if two.Lease.Holder != "bob" {
		t.Error("they share one lease")
	}
}

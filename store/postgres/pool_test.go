//go:build linux

package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A session that keeps a row locked holds up everybody who asks for that resource. They have all connections
// then, but for one: who holds another lease still renews it.
func TestRenewalsHaveAConnection(t *testing.T) {
	s := newStore(t, func(c *Config) { c.URL += "&pool_max_conns=4" })
	acquire(t, s, request("stuck", "a"))
	acquire(t, s, request("other", "b"))
	tx := begin(t, pgx.ReadCommitted)
	s.execute(t, tx, "select from @.resources where name = 'stuck' for update")

	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for i := range 100 {
		r := request("stuck", fmt.Sprint("waiter", i))
		r.Wait = time.Minute
		asking.Go(func() { _, _ = s.Acquire(ctx, r) })
		asking.Go(func() { _, _ = s.Break(ctx, store.BreakRequest{Ref: store.Ref{Resource: "stuck", ID: "a"}}) })
	}
	defer asking.Wait()
	defer cancel()
	blocked(t)

	soon, cancelSoon := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancelSoon()
	if r, err := s.Renew(soon, store.Ref{Resource: "other", ID: "b"}); err != nil || r[0].Err != nil || r[0].Ended != nil {
		t.Errorf("a renewal of another lease: %+v, %v", r, err)
	}
}

// The first wait starts the listener. If that is during Close, it does not start any more.
func TestCloseDuringTheFirstWait(t *testing.T) {
	config := Config{URL: theServer(t).URL() + "&application_name=first-wait", Schema: newSchema(), Migrate: true}
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, s, request("r", "a"))
	tx := begin(t, pgx.ReadCommitted)
	s.execute(t, tx, "select from @.resources for update")
	waits, closed := make(chan error), make(chan error)
	go func() {
		r := request("r", "b")
		r.Wait = time.Minute
		_, err := s.Acquire(t.Context(), r)
		waits <- err
	}()
	blocked(t)
	go func() { closed <- s.Close() }()
	waitFor(t, func() bool { // the pool is closed, and waits for the call
		conn, err := s.pool.Acquire(t.Context())
		if err == nil {
			conn.Release()
		}
		return err != nil
	})
	commit(t, tx)
	if err := <-waits; err == nil {
		t.Error("granted twice")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if s.listener.stop != nil {
		t.Error("the listener runs after Close")
	}
}

// All connections are lost without a word, as in the failover of an address. Others take their places at once.
func TestConnectionsThatAreLostWithoutAWord(t *testing.T) {
	p := theServer(t)
	link := peer.StartProxy(t, p.Address)
	url := strings.Replace(p.URL(), p.Address, link.Address, 1) + "&pool_max_conns=2&pool_min_conns=2"
	s := openStore(t, Config{URL: url, Schema: newSchema(), Migrate: true})
	r := request("r", "a")
	r.TTL = 8 * time.Second
	acquire(t, s, r)
	waitFor(t, func() bool { return s.pool.Stat().IdleConns() == 2 })
	link.Forget()
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		r, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"})
		cancel()
		if err == nil && r[0].Ended != nil {
			t.Fatalf("the lease was lost: %+v", r[0].Ended)
		}
		if err == nil {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
}

//go:build linux

package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// quiet are settings for many handles: a failover does not matter, and each has few connections.
func quiet(url string) Config { return Config{URL: url + "&pool_max_conns=4"} }

// A second handle shares the connections of the first, because opening some dozens at once takes a busy
// machine longer than a TTL. With -full each has its own.
type second struct{ *Store }

func newSecond(t testing.TB, first store.Store) store.Store {
	var s *Store
	switch first := first.(type) {
	case *Store:
		s = first
	case second:
		s = first.Store
	}
	l, err := newListener(Config{Schema: s.listener.channel}, s.pool.Config())
	if err != nil {
		t.Fatal(err)
	}
	return second{&Store{namespace: s.namespace, schema: s.schema, maxTTL: s.maxTTL, pool: s.pool, listener: l,
		log: s.log, clock: s.clock, slots: s.slots}}
}

func (s second) Close() error {
	s.listener.close()
	return nil
}

// suite returns the suite's configuration for a server that was set up.
func suite(t testing.TB, p *peer.Postgres, url string) storetest.Config {
	open := func(url string) func(t testing.TB) store.Store {
		return func(t testing.TB) store.Store {
			s, err := Open(t.Context(), quiet(url))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	if err := Migrate(t.Context(), quiet(p.URL())); err != nil {
		t.Fatal(err)
	}
	again := newSecond
	if *full {
		again = nil
	}
	return storetest.Config{
		Open:    open(url),
		Second:  again,
		TTL:     2 * time.Second,
		Full:    *full,
		Restart: func(testing.TB) { p.Stop(); p.Restart() },
		Kill:    func(testing.TB) { p.Kill(); p.Restart() },
		Hang:    func(testing.TB) func() { p.Pause(); return p.Resume },
		Wipe:    func(testing.TB) { p.SQL("truncate leasehold.resources, leasehold.waiters, leasehold.marks") },
		Denied: func(t testing.TB) store.Store {
			p.SQL("create role stranger login")
			p.SQL("grant usage on schema leasehold to stranger")
			p.SQL("grant execute on all functions in schema leasehold to stranger")
			s := open(strings.Replace(url, "test@", "stranger@", 1))(t)
			p.SQL("revoke execute on all functions in schema leasehold from stranger")
			return s
		},
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	p := peer.StartPostgres(t, peer.PostgresConfig{Args: []string{"-c", "max_connections=600"}})
	storetest.Run(t, suite(t, p, p.URL()))
}

func TestStoreThroughPgBouncer(t *testing.T) {
	long(t)
	t.Parallel()
	p := peer.StartPostgres(t, peer.PostgresConfig{})
	c := suite(t, p, peer.StartPgBouncer(t, p.Address).URL())
	c.Wake = 2 * time.Second // no notification arrives
	c.Denied = nil           // every client is the same role
	storetest.Run(t, c)
}

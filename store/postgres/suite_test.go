//go:build linux

package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
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

// opens returns what opens handles on a server.
func opens(url string, change ...func(*Config)) func(t testing.TB) store.Store {
	return func(t testing.TB) store.Store {
		c := quiet(url)
		for _, f := range change {
			f(&c)
		}
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// suiteTTL is longer with -full: then hundreds of connections are opened at once.
func suiteTTL() time.Duration {
	if *full {
		return 4 * time.Second
	}
	return 2 * time.Second
}

// suite returns the suite's configuration for a server.
func suite(t testing.TB, p *peer.Postgres, url string) storetest.Config {
	if err := Migrate(t.Context(), quiet(p.URL())); err != nil {
		t.Fatal(err)
	}
	again := newSecond
	if *full {
		again = nil
	}
	return storetest.Config{
		Open:    opens(url),
		Second:  again,
		TTL:     suiteTTL(),
		Full:    *full,
		Restart: func(testing.TB) { p.Stop(); p.Restart() },
		Kill:    func(testing.TB) { p.Kill(); p.Restart() },
		Hang:    func(testing.TB) func() { p.Pause(); return p.Resume },
		Wipe:    func(testing.TB) { p.SQL("truncate leasehold.resources, leasehold.waiters, leasehold.marks") },
		Denied: func(t testing.TB) store.Store {
			p.SQL("create role stranger login")
			p.SQL("grant usage on schema leasehold to stranger")
			p.SQL("grant execute on all functions in schema leasehold to stranger")
			s := opens(strings.Replace(url, "test@", "stranger@", 1))(t)
			p.SQL("revoke execute on all functions in schema leasehold from stranger")
			return s
		},
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	p := peer.StartPostgres(t, peer.PostgresConfig{Args: []string{"-c", "max_connections=600"}})
	c := suite(t, p, p.URL())
	killed := peer.StartPostgres(t, peer.PostgresConfig{})
	on := suite(t, killed, killed.URL())
	c.Apart, c.Restart, c.Kill, c.Hang, c.Wipe = on.Open, on.Restart, on.Kill, on.Hang, on.Wipe
	c.Clock = func(t testing.TB) storetest.Clock {
		clock := peer.NewClock(t)
		p := peer.StartPostgres(t, peer.PostgresConfig{Clock: clock})
		return storetest.Clock{Open: opens(p.URL(), migrates), Step: clock.Step}
	}
	c.Standby = newStandby
	storetest.Run(t, c)
}

func migrates(c *Config) { c.Migrate = true }

// newStandby starts a server and a standby behind one address.
func newStandby(t testing.TB) storetest.Standby {
	primary := peer.StartPostgres(t, peer.PostgresConfig{})
	way := peer.StartProxy(t, primary.Address)
	if err := Migrate(t.Context(), quiet(primary.URL())); err != nil {
		t.Fatal(err)
	}
	standby := primary.StartStandby(t, peer.PostgresConfig{})
	_, err := Open(t.Context(), Config{URL: standby.URL()})
	if code(err) != leasehold.Unavailable || !strings.Contains(err.Error(), "standby") {
		t.Errorf("opened at a standby: %v", err)
	}
	url := strings.Replace(primary.URL(), primary.Address, way.Address, 1)
	return storetest.Standby{
		Open: opens(url, func(c *Config) { c.MaxTTL = suiteTTL() }),
		Lag: func() {
			written := primary.SQL("select pg_current_wal_lsn()")
			for range 1000 {
				if standby.SQL("select pg_last_wal_replay_lsn() >= '"+written+"'") == "t" {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			standby.Link.Hang()
		},
		Promote: func() {
			primary.Kill()
			standby.Promote()
			way.Redirect(standby.Address)
		},
	}
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

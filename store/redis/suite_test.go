package redis

import (
	"flag"
	"os"
	"testing"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

var full = flag.Bool("full", false, "run the long tests, too")

// TestMain lets more tests run at once than there are processors: they wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// After each loss nothing is granted for the largest TTL, so the short form has only one. The suite is not
// parallel to the other tests: it keeps leases in real time, and they start many servers.
func TestStore(t *testing.T) {
	server := peer.StartRedis(t, peer.RedisConfig{Args: []string{"--appendonly", "yes"}})
	c := storetest.Config{
		Open: func(t testing.TB) store.Store {
			c := config(server.Address)
			c.MaxTTL = 8 * testTTL
			return openWith(t, c)
		},
		TTL:    2 * testTTL,
		Full:   *full,
		Kill:   func(testing.TB) { server.Kill(); server.Restart() },
		Hang:   func(testing.TB) func() { server.Pause(); return server.Resume },
		Denied: func(t testing.TB) store.Store { return openDenied(t, server) },
	}
	if *full {
		c.Restart = func(testing.TB) { server.Stop(); server.Restart() }
		c.Wipe = func(testing.TB) { server.Do("FLUSHALL") }
	}
	storetest.Run(t, c)
}

// openDenied opens a store whose user may do nothing any more.
func openDenied(t testing.TB, server *peer.Redis) store.Store {
	server.Do("ACL", "SETUSER", "denied", "on", "nopass", "~*", "&*", "+@all")
	c := config(server.Address)
	c.Options.Username, c.Options.Password = "denied", "any"
	s := openWith(t, c)
	server.Do("ACL", "SETUSER", "denied", "-@all")
	return s
}

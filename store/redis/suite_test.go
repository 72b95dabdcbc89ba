package redis

import (
	"flag"
	"os"
	"testing"
	"time"

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

// After each loss nothing is granted for the largest TTL, so the server that is killed has a short one. The
// suite is not parallel to the other tests: it keeps leases in real time, and they start many servers.
func TestStore(t *testing.T) {
	aof := peer.RedisConfig{Args: []string{"--appendonly", "yes"}}
	server, killed := peer.StartRedis(t, aof), peer.StartRedis(t, aof)
	const ttl = 2 * testTTL
	storetest.Run(t, storetest.Config{
		Open:    opens(server.Address, 4*ttl),
		Apart:   opens(killed.Address, ttl),
		TTL:     ttl,
		Full:    *full,
		Restart: func(testing.TB) { killed.Stop(); killed.Restart() },
		Kill:    func(testing.TB) { killed.Kill(); killed.Restart() },
		Hang:    func(testing.TB) func() { killed.Pause(); return killed.Resume },
		Wipe:    func(testing.TB) { killed.Do("FLUSHALL") },
		Denied:  func(t testing.TB) store.Store { return openDenied(t, server) },
		Clock: func(t testing.TB) storetest.Clock {
			clock := peer.NewClock(t)
			server := peer.StartRedis(t, peer.RedisConfig{Clock: clock})
			return storetest.Clock{Open: opens(server.Address, 4*ttl), Step: clock.Step}
		},
		Standby: func(t testing.TB) storetest.Standby { return newStandby(t, ttl) },
	})
}

// opens returns what opens handles on a server that is used for the first time.
func opens(address string, maxTTL time.Duration) func(t testing.TB) store.Store {
	return func(t testing.TB) store.Store {
		c := config(address)
		c.MaxTTL = maxTTL
		return openWith(t, c)
	}
}

// newStandby starts a server and a replica behind one address.
func newStandby(t testing.TB, maxTTL time.Duration) storetest.Standby {
	primary := peer.StartRedis(t, peer.RedisConfig{})
	replica := primary.StartReplica(t, peer.RedisConfig{})
	way := peer.StartProxy(t, primary.Address)
	return storetest.Standby{
		Open: opens(way.Address, maxTTL),
		Lag: func() {
			primary.Do("SET", "the-last", "1")
			for range 1000 {
				if replica.Do("GET", "the-last") == "1" {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			replica.Link.Hang()
		},
		Promote: func() {
			primary.Kill()
			replica.Promote()
			way.Redirect(replica.Address)
		},
	}
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

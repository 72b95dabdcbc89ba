//go:build linux

package peer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A RedisCluster is a Redis Cluster of three primaries without replicas.
type RedisCluster struct {
	Nodes []*Redis
}

// StartRedisCluster starts a cluster and waits until all slots are served.
func StartRedisCluster(t testing.TB, config RedisConfig) *RedisCluster {
	t.Helper()
	c := &RedisCluster{}
	var nodes []string
	for range 3 {
		r := newRedis(t, config)
		host, _, _ := net.SplitHostPort(r.Address)
		r.run = append(r.run, "--cluster-enabled", "yes", "--cluster-port", freePort(t, host),
			"--cluster-node-timeout", "2000", "--cluster-announce-ip", host)
		c.Nodes = append(c.Nodes, r)
		nodes = append(nodes, r.Address)
	}
	startAll(t, c.Nodes)
	create := append([]string{"redis-cli", "--cluster", "create"}, nodes...)
	if _, err := c.Nodes[0].output(append(create, "--cluster-yes")...); err != nil {
		t.Fatal(err)
	}
	await(t, "the Redis Cluster", c.ok)
	return c
}

// Addresses returns the addresses of all nodes.
func (c *RedisCluster) Addresses() (all []string) {
	for _, r := range c.Nodes {
		all = append(all, r.Address)
	}
	return all
}

// ok reports whether every node says that all slots are served.
func (c *RedisCluster) ok() error {
	for _, r := range c.Nodes {
		said, err := r.try("CLUSTER", "INFO")
		if err == nil && !strings.Contains(said, "cluster_state:ok") {
			err = fmt.Errorf("%s says %s", r.Address, said)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freePort returns a port of an address at which nobody listens.
func freePort(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// SentinelName is what the sentinels of [StartSentinels] call the primary.
const SentinelName = "primary"

// A Sentinel is three Redis Sentinels, which watch one primary and its replicas. They notice a dead
// primary after a second.
type Sentinel struct {
	Members []*Redis
}

// StartSentinels starts three sentinels for a primary, and waits until they know each other and
// its replicas.
func StartSentinels(t testing.TB, primary *Redis) *Sentinel {
	t.Helper()
	s := &Sentinel{}
	host, port, _ := net.SplitHostPort(primary.Address)
	for range 3 {
		s.Members = append(s.Members, newSentinel(t, host, port))
	}
	startAll(t, s.Members)
	// Sentinels also count a replica that has its data and has not said so yet.
	replicas := strings.Count(primary.Do("INFO", "replication"), ",state=")
	want := []string{"num-other-sentinels\n2", fmt.Sprintf("num-slaves\n%d", replicas)}
	await(t, "the sentinels to know each other", func() error {
		for _, m := range s.Members {
			said := m.Do("SENTINEL", "MASTER", SentinelName)
			for _, w := range want {
				if !strings.Contains(said, w) {
					return fmt.Errorf("%s says %q", m.Address, said)
				}
			}
		}
		return nil
	})
	return s
}

// newSentinel prepares one sentinel. It writes what it learns into its own configuration.
func newSentinel(t testing.TB, host, port string) *Redis {
	t.Helper()
	r := &Redis{Server: Server{Address: process.Reserve(t), name: "sentinel", dir: t.TempDir()}}
	own, ownPort, _ := net.SplitHostPort(r.Address)
	settings := fmt.Sprintf(`bind %[1]s
port %[2]s
dir %[3]s
protected-mode no
sentinel announce-ip %[1]s
sentinel announce-port %[2]s
sentinel monitor %[4]s %[5]s %[6]s 2
sentinel down-after-milliseconds %[4]s 1000
sentinel failover-timeout %[4]s 5000
`, own, ownPort, r.dir, SentinelName, host, port)
	file := filepath.Join(r.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run = []string{find(t, "redis-server", "make deps"), file, "--sentinel"}
	r.ready = r.ping
	return r
}

// Addresses returns the addresses of all sentinels.
func (s *Sentinel) Addresses() (all []string) {
	for _, r := range s.Members {
		all = append(all, r.Address)
	}
	return all
}

// Primary returns the address of the primary, as the first sentinel knows it.
func (s *Sentinel) Primary() string {
	said := strings.Fields(s.Members[0].Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelName))
	if len(said) != 2 {
		return ""
	}
	return net.JoinHostPort(said[0], said[1])
}

//go:build linux

package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// zookeeperJar is where Debian's package puts ZooKeeper. It names the other jars that it needs.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// A ZooKeeperConfig says what is special about a ZooKeeper.
type ZooKeeperConfig struct {
	Members int           // one if zero
	Tick    time.Duration // two seconds if zero; sessions last 2 to 20 ticks

	// Measured makes it sync its disk and lets Java take memory and compile as it likes, as where it is
	// measured. Without it a member starts in half the time.
	Measured bool
}

// java returns the flags of Java.
func (c ZooKeeperConfig) java() []string {
	if c.Measured {
		return []string{"-Xmx2g"}
	}
	return []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"}
}

// A ZooKeeper is an ensemble of one or several members.
type ZooKeeper struct {
	Members []*ZooKeeperMember

	t testing.TB
}

// A ZooKeeperMember is one server of a ZooKeeper. Where there are several, [Server.Restart] does not
// wait until the member has found the others.
type ZooKeeperMember struct {
	Server

	quorum   string   // host:port for followers
	election string   // port of the same host
	links    []*Proxy // to where the others listen for followers
}

// StartZooKeeper starts a ZooKeeper and waits until every member serves.
func StartZooKeeper(t testing.TB, config ZooKeeperConfig) *ZooKeeper {
	t.Helper()
	java := find(t, "java", "make deps")
	if !exists(zookeeperJar) {
		t.Skip("left out: ZooKeeper is not installed here (make deps)")
	}
	if config.Tick == 0 {
		config.Tick = 2 * time.Second
	}
	z := &ZooKeeper{t: t}
	for i := range max(1, config.Members) {
		m := &ZooKeeperMember{quorum: process.Reserve(t)}
		host, _, _ := net.SplitHostPort(m.quorum)
		m.election = freePort(t, host)
		m.Server = Server{Address: process.Reserve(t), dir: t.TempDir(), ready: m.serves}
		m.name = fmt.Sprint("zookeeper ", i+1)
		if config.Members > 1 { // it cannot do more before a majority runs
			m.ready = m.listens
		}
		z.Members = append(z.Members, m)
	}
	for i, m := range z.Members {
		file := filepath.Join(m.dir, "zoo.cfg")
		err := errors.Join(
			os.WriteFile(file, []byte(z.settings(t, i, config)), 0o600),
			os.WriteFile(filepath.Join(m.dir, "myid"), fmt.Append(nil, i+1), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		m.run = append(append([]string{java}, config.java()...),
			"-Dzookeeper.admin.enableServer=false", "-cp", zookeeperJar+":/usr/share/java/slf4j-simple.jar",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	}
	startAll(t, z.Members)
	await(t, "ZooKeeper to elect a leader", func() error {
		for _, m := range z.Members {
			if err := m.serves(); err != nil {
				return err
			}
		}
		return nil
	})
	return z
}

// settings returns the configuration of one member. It reaches the others through proxies, if it
// follows them; elections do not go through these.
func (z *ZooKeeper) settings(t testing.TB, of int, config ZooKeeperConfig) string {
	t.Helper()
	m := z.Members[of]
	host, port, _ := net.SplitHostPort(m.Address)
	lines := []string{
		fmt.Sprintf("tickTime=%d", config.Tick.Milliseconds()), "initLimit=10", "syncLimit=5", "dataDir=" + m.dir,
		"clientPort=" + port, "clientPortAddress=" + host, "4lw.commands.whitelist=*", "maxClientCnxns=0",
		"standaloneEnabled=true",
	}
	if !config.Measured {
		lines = append(lines, "forceSync=no")
	}
	for i, other := range z.Members {
		if len(z.Members) == 1 {
			break
		}
		quorum := other.quorum
		if i != of {
			host, _, _ := net.SplitHostPort(quorum)
			link := startProxyAt(t, host, quorum)
			m.links = append(m.links, link)
			quorum = link.Address
		}
		lines = append(lines, fmt.Sprintf("server.%d=%s:%s", i+1, quorum, other.election))
	}
	return strings.Join(lines, "\n") + "\n"
}

// Addresses returns the addresses of all members.
func (z *ZooKeeper) Addresses() (all []string) {
	for _, m := range z.Members {
		all = append(all, m.Address)
	}
	return all
}

// Version returns the version of the members' program.
func (z *ZooKeeper) Version() string {
	z.t.Helper()
	said, _ := ask(z.Members[0].Address, "srvr")
	_, said, _ = strings.Cut(said, "version: ")
	version, _, _ := strings.Cut(said, "-")
	return version
}

// Ephemerals returns the number of nodes that end with their sessions.
func (m *ZooKeeperMember) Ephemerals() (n int) {
	m.t.Helper()
	said, err := ask(m.Address, "mntr")
	m.check(err)
	_, said, _ = strings.Cut(said, "zk_ephemerals_count\t")
	_, err = fmt.Sscan(said, &n)
	m.check(err)
	return n
}

// Leader returns the member that leads now. It waits for one.
func (z *ZooKeeper) Leader() *ZooKeeperMember {
	z.t.Helper()
	var leader *ZooKeeperMember
	await(z.t, "ZooKeeper to have a leader", func() error {
		for _, m := range z.Members {
			if said, err := ask(m.Address, "srvr"); err == nil && strings.Contains(said, "Mode: leader") {
				leader = m
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return leader
}

// Follower returns a member that follows the leader now.
func (z *ZooKeeper) Follower() *ZooKeeperMember {
	z.t.Helper()
	leader := z.Leader()
	for _, m := range z.Members {
		if said, err := ask(m.Address, "srvr"); err == nil && m != leader && strings.Contains(said, "Mode: follower") {
			return m
		}
	}
	z.t.Fatal("no member follows")
	return nil
}

// Cut cuts a follower off from its leader. Its clients stay connected.
func (m *ZooKeeperMember) Cut() {
	for _, link := range m.links {
		link.Hang()
	}
}

// Heal ends what [ZooKeeperMember.Cut] did.
func (m *ZooKeeperMember) Heal() {
	for _, link := range m.links {
		link.Forward()
	}
}

// serves reports whether clients can work with the member.
func (m *ZooKeeperMember) serves() error {
	said, err := ask(m.Address, "srvr")
	if err == nil && !strings.Contains(said, "Mode: ") {
		err = fmt.Errorf("it says %q", said)
	}
	return err
}

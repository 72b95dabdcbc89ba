//go:build linux

package peer

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// A RedisConfig says what is special about a Redis.
type RedisConfig struct {
	Args  []string // of redis-server, such as "--appendonly", "yes"
	Clock *Clock   // its wall clock; nil for the machine's
}

// A Redis is one server. By default it keeps its data across [Server.Stop] but not across
// [Server.Kill], as Debian's does: ask for "--appendonly", "yes".
type Redis struct {
	Server

	// Link is what a replica's connection to its primary goes through; nil for a primary.
	Link *Proxy
}

// StartRedis starts a Redis.
func StartRedis(t testing.TB, config RedisConfig) *Redis {
	t.Helper()
	r := newRedis(t, config)
	r.start(t)
	return r
}

// newRedis prepares a server. It announces its own address, because others see it connect from
// 127.0.0.1 instead.
func newRedis(t testing.TB, config RedisConfig) *Redis {
	t.Helper()
	r := &Redis{Server: Server{
		Address: process.Reserve(t), name: "redis-server", dir: t.TempDir(), env: config.Clock.env(),
	}}
	host, port, _ := net.SplitHostPort(r.Address)
	r.run = append([]string{
		find(t, "redis-server", "make deps"), "--bind", host, "--port", port, "--dir", r.dir, "--protected-mode", "no",
		"--replica-announce-ip", host, "--replica-announce-port", port, "--repl-diskless-sync-delay", "0",
	}, config.Args...)
	r.ready = r.ping
	return r
}

// ping reports whether the server answers. One that still loads its data says so, and does not.
func (r *Redis) ping() error {
	answer, err := ask(r.Address, "PING\r\n")
	if err == nil && !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		err = fmt.Errorf("it answers %q", answer)
	}
	return err
}

// StartReplica starts a replica and waits until it has caught up. The connection to its primary
// goes through [Redis.Link].
func (r *Redis) StartReplica(t testing.TB, config RedisConfig) *Redis {
	t.Helper()
	link := StartProxy(t, r.Address)
	host, port, _ := net.SplitHostPort(link.Address)
	config.Args = append([]string{"--replicaof", host + " " + port}, config.Args...)
	replica := newRedis(t, config)
	replica.Link = link
	replica.start(t)
	await(t, "the replica to catch up", func() error {
		if said := replica.Do("INFO", "replication"); !strings.Contains(said, "master_link_status:up") {
			return fmt.Errorf("it says %s", said)
		}
		return nil
	})
	return replica
}

// Promote makes a replica a primary. The old primary is not told, and goes on.
func (r *Redis) Promote() { r.Do("REPLICAOF", "NO", "ONE") }

// Do runs a command by redis-cli and returns what that prints. An error fails the test.
func (r *Redis) Do(args ...string) string {
	r.t.Helper()
	said, err := r.try(args...)
	r.check(err)
	return said
}

func (r *Redis) try(args ...string) (string, error) {
	host, port, _ := net.SplitHostPort(r.Address)
	return r.output(append([]string{"redis-cli", "-e", "-h", host, "-p", port}, args...)...)
}

// ask sends a line and returns the beginning of the answer.
func ask(address, line string) (string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(line)); err != nil {
		return "", err
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// await asks again and again until there is no error, and fails the test if there always is one.
func await(t testing.TB, what string, ask func() error) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("waited %v for %s: %v", patience, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

//go:build linux

package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A ConsulConfig says what is special about a Consul.
type ConsulConfig struct {
	Members  int            // one if zero
	Settings map[string]any // more of the configuration, such as "session_ttl_min": "1s"
}

// A Consul is a cluster of one or several servers.
type Consul struct {
	Members []*ConsulMember

	t testing.TB
}

// A ConsulMember is one server of a Consul. Where there are several, [Server.Restart] does not wait
// until the member has found the others.
type ConsulMember struct {
	Server
	rpc string // where the other servers connect to
}

// StartConsul starts a Consul and waits until it has a leader.
func StartConsul(t testing.TB, config ConsulConfig) *Consul {
	t.Helper()
	binary := find(t, "consul", "make peers")
	c := &Consul{t: t}
	var join []string
	for range max(1, config.Members) {
		m := &ConsulMember{rpc: process.Reserve(t)}
		m.Server = Server{Address: process.Reserve(t), dir: t.TempDir(), ready: m.elected}
		m.name = "consul at " + m.rpc
		if config.Members > 1 { // it cannot do more before a majority runs
			m.ready = m.listens
		}
		c.Members = append(c.Members, m)
		host, _, _ := net.SplitHostPort(m.rpc)
		join = append(join, net.JoinHostPort(host, freePort(t, host)))
	}
	for i, m := range c.Members {
		file := filepath.Join(t.TempDir(), "consul.json")
		settings, err := json.Marshal(m.settings(config, join, i))
		if err = errors.Join(err, os.WriteFile(file, settings, 0o600)); err != nil {
			t.Fatal(err)
		}
		m.run = []string{binary, "agent", "-config-file", file}
	}
	startAll(t, c.Members)
	await(t, "Consul to elect a leader", func() error {
		for _, m := range c.Members {
			if err := m.elected(); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// settings returns the configuration of one member. What leases do not need does not listen.
func (m *ConsulMember) settings(config ConsulConfig, join []string, i int) map[string]any {
	host, rpc, _ := net.SplitHostPort(m.rpc)
	_, serf, _ := net.SplitHostPort(join[i])
	client, api, _ := net.SplitHostPort(m.Address)
	all := map[string]any{
		"server": true, "bootstrap_expect": len(join), "retry_join": join, "retry_interval": "1s",
		"node_name": fmt.Sprintf("m%d", i), "data_dir": m.dir, "log_level": "warn", "disable_update_check": true,
		"bind_addr": host, "client_addr": client, "performance": map[string]any{"raft_multiplier": 1},
		"connect": map[string]any{"enabled": false}, "leave_on_terminate": false,
		"ports": map[string]any{
			"http": json.Number(api), "server": json.Number(rpc), "serf_lan": json.Number(serf),
			"serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
		},
	}
	for name, value := range config.Settings {
		all[name] = value
	}
	return all
}

// Leader returns the member that leads now. It waits for one.
func (c *Consul) Leader() *ConsulMember {
	c.t.Helper()
	var leader *ConsulMember
	await(c.t, "Consul to have a leader", func() error {
		for _, m := range c.Members {
			for _, of := range c.Members {
				if said, err := m.leader(); err == nil && said == of.rpc && of.elected() == nil {
					leader = of
					return nil
				}
			}
		}
		return errors.New("no member leads")
	})
	return leader
}

// Binary returns the path of the members' program.
func (c *Consul) Binary() string { return c.Members[0].run[0] }

// Addresses returns the addresses of all members.
func (c *Consul) Addresses() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Address)
	}
	return all
}

// URL returns what clients of this member connect to.
func (m *ConsulMember) URL() string { return "http://" + m.Address }

// leader returns the address at which other servers reach the leader; "" if there is none.
func (m *ConsulMember) leader() (address string, err error) {
	body, err := httpDo(http.MethodGet, m.URL()+"/v1/status/leader", "")
	if err == nil {
		err = json.Unmarshal(body, &address)
	}
	return address, err
}

// elected reports whether the member knows a leader who can read and write.
func (m *ConsulMember) elected() error {
	address, err := m.leader()
	if err == nil && address == "" {
		err = errors.New("it knows no leader")
	}
	if err == nil {
		_, err = httpDo(http.MethodGet, m.URL()+"/v1/session/list?consistent", "")
	}
	return err
}

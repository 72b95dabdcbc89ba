//go:build linux

package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A LeaseholdConfig says what is special about a Leasehold.
type LeaseholdConfig struct {
	Binary  string   // the path of leasehold
	Members int      // one if zero
	Args    []string // of "leasehold serve", of every member
	Etcd    bool     // it has a port for clients of etcd, too
	Consul  bool     // and one for those of Consul
}

// A Leasehold is a cluster of our own servers, to be measured or tried beside the others.
type Leasehold struct {
	Members []*LeaseholdMember

	t testing.TB
}

// A LeaseholdMember is one server of a Leasehold. Where there are several, [Server.Restart] does not
// wait until the member has found the others.
type LeaseholdMember struct {
	Server
	EtcdURL    string // what clients of etcd connect to; empty: what all connect to
	ConsulURL  string // what those of Consul connect to; empty: there is no port for them
	name, peer string
}

// StartLeasehold starts a Leasehold and waits until every member serves.
func StartLeasehold(t testing.TB, config LeaseholdConfig) *Leasehold {
	t.Helper()
	l := &Leasehold{t: t}
	var initial []string
	for i := range max(1, config.Members) {
		m := &LeaseholdMember{name: fmt.Sprintf("n%d", i+1), peer: process.Reserve(t)}
		m.Server = Server{Address: process.Reserve(t), name: "leasehold " + m.name, dir: t.TempDir(), ready: m.serves}
		if config.Members > 1 { // it cannot do more before a majority runs
			m.ready = m.listens
		}
		l.Members = append(l.Members, m)
		initial = append(initial, m.name+"="+m.peer)
	}
	for _, m := range l.Members {
		m.run = []string{config.Binary, "serve", "--name", m.name, "--data", m.dir, "--listen", m.Address,
			"--log-level", "warn"}
		if config.Members > 1 {
			m.run = append(m.run, "--insecure", "--initial-cluster", strings.Join(initial, ","))
		}
		if config.Etcd {
			address := process.Reserve(t)
			m.EtcdURL = "http://" + address
			m.run = append(m.run, "--etcd-listen", address)
		}
		if config.Consul {
			address := process.Reserve(t)
			m.ConsulURL = "http://" + address
			m.run = append(m.run, "--consul-listen", address)
		}
		m.run = append(m.run, config.Args...)
	}
	startAll(t, l.Members)
	await(t, "Leasehold to elect a leader", func() error {
		for _, m := range l.Members {
			if err := m.serves(); err != nil {
				return err
			}
		}
		return nil
	})
	return l
}

// URLs returns the URLs of all members.
func (l *Leasehold) URLs() (urls []string) {
	for _, m := range l.Members {
		urls = append(urls, m.URL())
	}
	return urls
}

// Leader returns the member that leads now. It waits for one.
func (l *Leasehold) Leader() *LeaseholdMember {
	l.t.Helper()
	var leader *LeaseholdMember
	await(l.t, "Leasehold to have a leader", func() error {
		for _, m := range l.Members {
			if leads, err := m.leads(); err == nil && leads {
				leader = m
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return leader
}

// URL returns what clients of this member connect to.
func (m *LeaseholdMember) URL() string { return "http://" + m.Address }

// leads reports whether the member leads.
func (m *LeaseholdMember) leads() (bool, error) {
	body, err := httpDo(http.MethodGet, m.URL()+"/v1/cluster", "")
	if err != nil {
		return false, err
	}
	var status struct{ Leader string }
	err = json.Unmarshal(body, &status)
	return status.Leader == m.name, err
}

// serves reports whether the member answers requests that need a leader.
func (m *LeaseholdMember) serves() error {
	_, err := httpDo(http.MethodGet, m.URL()+"/readyz", "")
	return err
}

//go:build linux

package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// An EtcdConfig says what is special about an etcd.
type EtcdConfig struct {
	Members int      // one if zero
	Args    []string // of every member
}

// An Etcd is a cluster of one or several members.
type Etcd struct {
	Members []*EtcdMember

	t testing.TB
}

// An EtcdMember is one server of an etcd. Where there are several, [Server.Restart] does not wait
// until the member has found the others, and [Server.Copy] and [Server.Restore] make no sense.
type EtcdMember struct {
	Server
	name, peer string
}

// StartEtcd starts an etcd and waits until it has a leader.
func StartEtcd(t testing.TB, config EtcdConfig) *Etcd {
	t.Helper()
	binary := find(t, "etcd", "make deps")
	e := &Etcd{t: t}
	var initial []string
	for i := range max(1, config.Members) {
		m := &EtcdMember{name: fmt.Sprintf("m%d", i), peer: process.Reserve(t)}
		m.Server = Server{Address: process.Reserve(t), name: "etcd " + m.name, dir: t.TempDir(), ready: m.leader}
		if config.Members > 1 { // it cannot do more before a majority runs
			m.ready = m.listens
		}
		e.Members = append(e.Members, m)
		initial = append(initial, m.name+"=http://"+m.peer)
	}
	for _, m := range e.Members {
		m.run = append([]string{
			binary, "--name", m.name, "--data-dir", m.dir, "--log-level", "warn", "--unsafe-no-fsync",
			"--listen-client-urls", m.URL(), "--advertise-client-urls", m.URL(),
			"--listen-peer-urls", "http://" + m.peer, "--initial-advertise-peer-urls", "http://" + m.peer,
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", e.Members[0].peer,
		}, config.Args...)
	}
	startAll(t, e.Members)
	await(t, "etcd to elect a leader", func() error {
		for _, m := range e.Members {
			if err := m.leader(); err != nil {
				return err
			}
		}
		return nil
	})
	return e
}

// Endpoints returns the URLs of all members.
func (e *Etcd) Endpoints() (urls []string) {
	for _, m := range e.Members {
		urls = append(urls, m.URL())
	}
	return urls
}

// Leader returns the member that leads now. It waits for one.
func (e *Etcd) Leader() *EtcdMember {
	e.t.Helper()
	var leader *EtcdMember
	await(e.t, "etcd to have a leader", func() error {
		for _, m := range e.Members {
			if leads, err := m.status(); err == nil && leads {
				leader = m
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return leader
}

// RestoreBumped is [Server.Restore] as etcd's manual tells to do it for clients that trust revisions:
// they continue that much above those of the copy, and what was written before counts as compacted.
func (m *EtcdMember) RestoreBumped(from string, by uint64) {
	m.t.Helper()
	etcdutl := find(m.t, "etcdutl", "make deps")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
	m.check(os.RemoveAll(m.dir))
	_, err := m.output(etcdutl, "snapshot", "restore", filepath.Join(from, "member", "snap", "db"), "--skip-hash-check",
		"--bump-revision", strconv.FormatUint(by, 10), "--mark-compacted", "--data-dir", m.dir, "--name", m.name,
		"--initial-cluster", m.name+"=http://"+m.peer, "--initial-advertise-peer-urls", "http://"+m.peer)
	m.check(err)
	m.check(m.launch())
}

// URL returns what clients of this member connect to.
func (m *EtcdMember) URL() string { return "http://" + m.Address }

// leader reports whether the member knows a leader.
func (m *EtcdMember) leader() error {
	_, err := m.status()
	return err
}

// status reports whether the member leads. It is an error if it knows no leader.
func (m *EtcdMember) status() (leads bool, err error) {
	body, err := httpDo(http.MethodPost, m.URL()+"/v3/maintenance/status", "{}")
	if err != nil {
		return false, err
	}
	var status struct {
		Leader string
		Header struct {
			MemberID string `json:"member_id"`
		}
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return false, err
	}
	if status.Leader == "" || status.Leader == "0" {
		return false, errors.New("it knows no leader")
	}
	return status.Leader == status.Header.MemberID, nil
}

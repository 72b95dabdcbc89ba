//go:build linux

package peer

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A MariaDB is one server. Its user "root" needs no password.
type MariaDB struct {
	Server
}

// StartMariaDB starts a MariaDB.
func StartMariaDB(t testing.TB) *MariaDB {
	t.Helper()
	install, mariadbd := find(t, "mariadb-install-db", "make deps"), find(t, "mariadbd", "make deps")
	find(t, "my_print_defaults", "make deps") // which the first of them calls
	as := unprivileged(t)
	m := &MariaDB{Server{Address: process.Reserve(t), name: "mariadbd", as: as, dir: newDir(t, as)}}
	fill := []string{install, "--no-defaults", "--datadir=" + m.dir, "--skip-test-db"}
	if _, err := m.output(append(fill, "--auth-root-authentication-method=normal")...); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(m.Address)
	m.run = []string{
		mariadbd, "--no-defaults", "--datadir", m.dir, "--port", port, "--bind-address", host,
		"--socket", filepath.Join(m.dir, "socket"), "--pid-file", filepath.Join(m.dir, "pid"),
	}
	m.ready = m.greets
	m.start(t)
	return m
}

// greets reports whether the server begins a conversation, with version 10 of its protocol.
func (m *MariaDB) greets() error {
	greeting, err := ask(m.Address, "")
	if err == nil && (len(greeting) < 5 || greeting[4] != 10) {
		err = fmt.Errorf("it says %q", greeting)
	}
	return err
}

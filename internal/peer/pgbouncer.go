//go:build linux

package peer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A PgBouncer is a pool of connections to a PostgreSQL, in transaction mode: each transaction of a
// client may run on another connection. Every client is the user "test".
type PgBouncer struct {
	Server
}

// StartPgBouncer starts a pool in front of a server at an address.
func StartPgBouncer(t testing.TB, target string) *PgBouncer {
	t.Helper()
	as := unprivileged(t)
	b := &PgBouncer{Server{Address: process.Reserve(t), name: "pgbouncer", as: as, dir: newDir(t, as)}}
	host, port, _ := net.SplitHostPort(target)
	listen, listenPort, _ := net.SplitHostPort(b.Address)
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s user=test
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits
`, host, port, listen, listenPort)
	file := filepath.Join(b.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	b.run = []string{find(t, "pgbouncer", "make deps"), file}
	isready := find(t, "pg_isready", "make deps")
	b.ready = func() error {
		_, err := b.output(isready, "-h", listen, "-p", listenPort)
		return err
	}
	b.start(t)
	return b
}

// URL returns what a client connects to.
func (b *PgBouncer) URL() string { return postgresURL("test", b.Address) }

//go:build linux

package peer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/test/process"
)

// A PostgresConfig says what is special about a PostgreSQL.
type PostgresConfig struct {
	Args  []string // of postgres, such as "-c", "max_connections=50"
	Clock *Clock   // its wall clock; nil for the machine's
	Name  string   // of a standby, for synchronous_standby_names; "standby" if empty
}

// A Postgres is one server. Its superuser is "test"; every user can connect without a password.
type Postgres struct {
	Server

	// Link is what a standby's connection to its primary goes through; nil for a primary.
	Link *Proxy
}

// StartPostgres starts a PostgreSQL.
func StartPostgres(t testing.TB, config PostgresConfig) *Postgres {
	t.Helper()
	p := newPostgres(t, config)
	initdb := find(t, "initdb", "make deps")
	_, err := p.output(initdb, "--pgdata", p.dir, "--username", "test", "--auth", "trust", "--no-sync")
	if err != nil {
		t.Fatal(err)
	}
	access := "host all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n"
	if err := os.WriteFile(filepath.Join(p.dir, "pg_hba.conf"), []byte(access), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	return p
}

// newPostgres prepares a server without data. It syncs nothing: that would only matter if the
// machine failed.
func newPostgres(t testing.TB, config PostgresConfig) *Postgres {
	t.Helper()
	as := unprivileged(t)
	p := &Postgres{Server: Server{
		Address: process.Reserve(t), name: "postgres", as: as, env: config.Clock.env(),
		dir: filepath.Join(newDir(t, as), "data"), quit: syscall.SIGINT, // SIGTERM would wait for the clients
	}}
	host, port, _ := net.SplitHostPort(p.Address)
	p.run = append([]string{
		find(t, "postgres", "make deps"), "-D", p.dir, "-h", host, "-p", port, "-k", "",
		"-c", "fsync=off", "-c", "wal_level=replica", "-c", "hot_standby=on",
	}, config.Args...)
	isready := find(t, "pg_isready", "make deps")
	p.ready = func() error {
		_, err := p.output(isready, "-h", host, "-p", port)
		return err
	}
	return p
}

// URL returns what a client of the superuser connects to.
func (p *Postgres) URL() string { return p.URLOf("test") }

// URLOf returns what a client of a user connects to.
func (p *Postgres) URLOf(user string) string { return postgresURL(user, p.Address) }

func postgresURL(user, address string) string {
	return "postgres://" + user + "@" + address + "/postgres?sslmode=disable"
}

// StartStandby starts a standby that follows a copy of this server. Its connection to the primary
// goes through [Postgres.Link]. With synchronous_standby_names set to its name it is synchronous:
// see [Postgres.Set].
func (p *Postgres) StartStandby(t testing.TB, config PostgresConfig) *Postgres {
	t.Helper()
	if config.Name == "" {
		config.Name = "standby"
	}
	standby := newPostgres(t, config)
	standby.Link = StartProxy(t, p.Address)
	host, port, _ := net.SplitHostPort(standby.Link.Address)
	source := fmt.Sprintf("host=%s port=%s user=test application_name=%s", host, port, config.Name)
	backup := find(t, "pg_basebackup", "make deps")
	_, err := standby.output(backup, "-d", source, "-D", standby.dir, "-R", "-c", "fast", "--no-sync")
	if err != nil {
		t.Fatal(err)
	}
	standby.start(t)
	await(t, "the standby to follow", func() error {
		said, err := p.try("select state from pg_stat_replication where application_name = '" + config.Name + "'")
		if err == nil && said != "streaming" {
			err = fmt.Errorf("its state is %q", said)
		}
		return err
	})
	return standby
}

// Promote makes a standby a primary. The old primary is not told, and goes on.
func (p *Postgres) Promote() { p.SQL("select pg_promote()") }

// Set changes a setting while the server runs.
func (p *Postgres) Set(setting, value string) {
	p.SQL("alter system set " + setting + " = '" + value + "'")
	p.SQL("select pg_reload_conf()")
}

// SQL runs a statement by psql, as the superuser, and returns what that prints: a line for each
// row, with a | between columns. An error fails the test.
func (p *Postgres) SQL(statement string) string {
	p.t.Helper()
	said, err := p.try(statement)
	p.check(err)
	return said
}

func (p *Postgres) try(statement string) (string, error) {
	return p.output("psql", "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", p.URL(), "-c", statement)
}

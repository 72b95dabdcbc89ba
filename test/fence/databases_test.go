// Package fence tries the guard on real databases. It is a module of its own, so that
// the drivers are nobody else's dependency.
package fence

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/leasehold/leasehold/fence"
)

// A database is one that the tests run on.
type database struct {
	name    string
	dialect fence.Dialect
	open    func(t *testing.T) *sql.DB
}

var databases = []database{
	{"SQLite", fence.SQLite, openSQLite},
	{"PostgreSQL", fence.PostgreSQL, openPostgreSQL},
	{"MariaDB", fence.MariaDB, openMariaDB},
}

func openSQLite(t *testing.T) *sql.DB {
	return connect(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate")
}

func openPostgreSQL(t *testing.T) *sql.DB {
	initdb, postgres := program(t, "PostgreSQL", "initdb"), program(t, "PostgreSQL", "postgres")
	dir, as := ownDir(t)
	run(t, as, initdb, "--pgdata", dir, "--username", "test", "--auth", "trust", "--no-sync", "--no-instructions")
	port := freePort(t)
	start(t, as, postgres, "-D", dir, "-h", "127.0.0.1", "-p", port, "-k", "", "-c", "fsync=off")
	return connect(t, "pgx", "postgres://test@127.0.0.1:"+port+"/postgres?sslmode=disable")
}

func openMariaDB(t *testing.T) *sql.DB {
	install, mariadbd := program(t, "MariaDB", "mariadb-install-db"), program(t, "MariaDB", "mariadbd")
	program(t, "MariaDB", "my_print_defaults") // which the first of them calls
	dir, as := ownDir(t)
	run(t, as, install, "--no-defaults", "--datadir="+dir, "--auth-root-authentication-method=normal", "--skip-test-db")
	port := freePort(t)
	start(t, as, mariadbd, "--no-defaults", "--datadir", dir, "--port", port, "--bind-address=127.0.0.1",
		"--socket", filepath.Join(dir, "socket"), "--pid-file", filepath.Join(dir, "pid"))
	admin := connect(t, "mysql", "root@tcp(127.0.0.1:"+port+")/")
	if _, err := admin.Exec("CREATE DATABASE guarded"); err != nil {
		t.Fatal(err)
	}
	return connect(t, "mysql", "root@tcp(127.0.0.1:"+port+")/guarded")
}

// program finds a program where Debian puts it, or leaves the test out.
func program(t *testing.T, of, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/" + name, "/usr/sbin/" + name} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Skipf("left out: the fence on a real %s needs %s", of, name)
	return ""
}

// ownDir makes a directory for a server, and says who it runs as: they refuse to be root.
func ownDir(t *testing.T) (string, *syscall.Credential) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() != 0 {
		return dir, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("left out: the fence on a real database needs a user other than root")
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func command(as *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func run(t *testing.T, as *syscall.Credential, name string, args ...string) {
	t.Helper()
	if out, err := command(as, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start runs a server until the test ends.
func start(t *testing.T, as *syscall.Credential, name string, args ...string) {
	t.Helper()
	cmd := command(as, name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, &said)
		}
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// connect waits until a database answers.
func connect(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	until := time.Now().Add(30 * time.Second)
	for {
		if err = db.Ping(); err == nil {
			return db
		}
		if time.Now().After(until) {
			t.Fatal(fmt.Errorf("%s does not answer: %w", driver, err))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Package fence tries the guard on real databases. It is a module of its own, so that
// the drivers are nobody else's dependency.
package fence

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/peer"
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
	return connect(t, "pgx", peer.StartPostgres(t, peer.PostgresConfig{}).URL())
}

func openMariaDB(t *testing.T) *sql.DB {
	source := "root@tcp(" + peer.StartMariaDB(t).Address + ")/"
	if _, err := connect(t, "mysql", source).Exec("CREATE DATABASE guarded"); err != nil {
		t.Fatal(err)
	}
	return connect(t, "mysql", source+"guarded")
}

func connect(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

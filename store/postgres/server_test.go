//go:build linux

package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/peer"
)

var full = flag.Bool("full", false, "run the long tests too")

// long leaves a test out that takes more than some seconds.
func long(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("left out: a long test; run with -full")
	}
}

// shared is what lasts for all tests: one server, with a schema for each test.
var shared struct {
	sync.Mutex
	tb     lasting
	server *peer.Postgres
	count  atomic.Int64
}

// A lasting testing.TB is that of the test which runs now; what it cleans up, it does after the last test.
type lasting struct {
	testing.TB
	cleanups []func()
}

func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lasting) Failed() bool { return false }

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "leasehold-postgres")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, f := range slices.Backward(shared.tb.cleanups) {
		f()
	}
	os.Exit(code)
}

// theServer returns the server that tests share.
func theServer(t testing.TB) *peer.Postgres {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	shared.tb.TB = t
	if shared.server == nil {
		shared.server = peer.StartPostgres(&shared.tb, peer.PostgresConfig{Args: []string{"-c", "max_connections=200"}})
	}
	return shared.server
}

// newSchema returns the name of a schema that no other test uses.
func newSchema() string { return fmt.Sprintf(`Lease's "%d"`, shared.count.Add(1)) }

// newStore opens a store in a schema of its own.
func newStore(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	return openStore(t, Config{URL: theServer(t).URL(), Schema: newSchema(), Migrate: true}, change...)
}

func openStore(t testing.TB, c Config, change ...func(*Config)) *Store {
	t.Helper()
	for _, f := range change {
		f(&c)
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// execute runs statements, in which @ is the schema of a store.
func (s *Store) execute(t testing.TB, conn pgxExec, statements string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), strings.ReplaceAll(statements, "@", s.schema), args...); err != nil {
		t.Fatal(err)
	}
}

type pgxExec = Querier

package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

	"github.com/leasehold/leasehold"
)

// A Dialect is a database that SQL supports.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1
	MariaDB            // and MySQL
	SQLite
)

// SQL keeps floors in a table, beside the data that they guard. The check and the write
// are one transaction, and the row of the resource is locked until it ends: a newer
// holder waits for it, an older one is refused.
//
// Any isolation level will do. With one that is stricter than read committed the database
// may refuse a transaction that conflicts with another; retry it then, as any other.
type SQL struct {
	db    *sql.DB
	raise string // creates the row, or raises its floor if the token is not late
	look  string // reads the floor, and keeps the row locked
	make  string
}

// DefaultTable is the default table of floors.
const DefaultTable = "leasehold_fence"

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// NewSQL returns a guard that keeps floors in a table, which CreateTable creates. If the name is
// empty it is DefaultTable.
func NewSQL(db *sql.DB, dialect Dialect, table string) (*SQL, error) {
	if table == "" {
		table = DefaultTable
	}
	if !tableName.MatchString(table) {
		return nil, fmt.Errorf("fence: %q is not the name of a table: use letters, digits and _", table)
	}
	s := &SQL{db: db}
	switch dialect {
	case PostgreSQL:
		s.make = `CREATE TABLE IF NOT EXISTS ` + table + ` (resource text PRIMARY KEY, floor bigint NOT NULL)`
		s.raise = `INSERT INTO ` + table + ` AS t (resource, floor) VALUES ($1, $2)
			ON CONFLICT (resource) DO UPDATE SET floor = GREATEST(t.floor, excluded.floor) WHERE t.floor <= $3`
		s.look = `SELECT floor FROM ` + table + ` WHERE resource = $1 FOR UPDATE`
	case MariaDB:
		s.make = `CREATE TABLE IF NOT EXISTS ` + table +
			` (resource varbinary(1024) PRIMARY KEY, floor bigint NOT NULL) ENGINE=InnoDB`
		s.raise = `INSERT INTO ` + table + ` (resource, floor) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE floor = IF(floor <= ?, GREATEST(floor, VALUES(floor)), floor)`
		s.look = `SELECT floor FROM ` + table + ` WHERE resource = ? FOR UPDATE`
	case SQLite:
		s.make = `CREATE TABLE IF NOT EXISTS ` + table + ` (resource text PRIMARY KEY, floor integer NOT NULL)`
		s.raise = `INSERT INTO ` + table + ` (resource, floor) VALUES (?, ?)
			ON CONFLICT (resource) DO UPDATE SET floor = max(floor, excluded.floor) WHERE floor <= ?`
		s.look = `SELECT floor FROM ` + table + ` WHERE resource = ?`
	default:
		return nil, errors.New("fence: the dialect is unknown: PostgreSQL, MariaDB and SQLite are known")
	}
	return s, nil
}

var _ Guard = (*SQL)(nil)

// CreateTable creates the table if it does not exist.
func (s *SQL) CreateTable(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.make)
	return err
}

// Admit checks a pass within the caller's transaction, before its write. If the holder is late,
// the error is a *LateError; roll back then. The write and the floor count once the transaction
// is committed.
func (s *SQL) Admit(ctx context.Context, tx *sql.Tx, resource string, pass Pass) error {
	if err := pass.check(resource, 0); errors.Is(err, leasehold.ErrInvalid) {
		return err // before the row is touched
	}
	if pass.Token != 0 {
		if _, err := tx.ExecContext(ctx, s.raise, resource, int64(pass.floor()), int64(pass.Token)); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
	}
	var floor int64
	err := tx.QueryRowContext(ctx, s.look, resource).Scan(&floor)
	switch {
	case errors.Is(err, sql.ErrNoRows): // no token, and none was seen
	case err != nil:
		return fmt.Errorf("fence: %w", err)
	}
	return pass.check(resource, leasehold.Token(floor))
}

// Tx calls fn in a transaction of its own unless the holder is late, and commits it if fn
// returns nil.
func (s *SQL) Tx(ctx context.Context, resource string, pass Pass, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := s.Admit(ctx, tx, resource, pass); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Do calls fn while the row of the resource is locked, for writes to another system. The floor is committed before fn
// is called, and stays whatever fn returns: what fn has written by then is not rolled back.
func (s *SQL) Do(ctx context.Context, resource string, pass Pass, fn func(ctx context.Context) error) error {
	if err := s.Tx(ctx, resource, pass, func(*sql.Tx) error { return nil }); err != nil {
		return err
	}
	return s.Tx(ctx, resource, pass, func(*sql.Tx) error { return fn(ctx) })
}

package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold"
)

//go:embed sql/*.sql
var scripts embed.FS

// version is that of the schema which this package needs. The function version of the schema returns it.
const version = 1

// migrate sets the schema up. It takes no advisory lock, which a pooler would give to two clients at once:
// the version's table is locked instead. Before there is one, several starters may get in each other's way;
// all but one of them then fail without a trace, and look again.
func (s *Store) migrate(ctx context.Context) error {
	for try := 0; ; try++ {
		err := s.migrateOnce(ctx)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || try == 20 || !collided(e.Code) {
			return s.migrateError(ctx, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(try+1) * rand.N(20*time.Millisecond)):
		}
	}
}

// collided reports whether an error says that somebody else created the same thing at the same time.
func collided(code string) bool {
	// Unique violation in a catalog, duplicate schema, table, object and function, deadlock, serialization
	// failure, and "tuple concurrently updated", which has only the code of an internal error.
	return slices.Contains([]string{"23505", "42P06", "42P07", "42710", "42723", "40P01", codeSerialize, "XX000"}, code)
}

func (s *Store) migrateError(ctx context.Context, err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return nil
	case ok && e.Code == codeDenied:
		return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
			"the schema %s cannot be set up: %s: let a role do it that may create it, or run: "+
				"create schema %s authorization ROLE", s.schema, e.Message, s.schema)}
	}
	if _, own := errors.AsType[*leasehold.Error](err); own {
		return err
	}
	return s.failure(ctx, err, false)
}

func (s *Store) migrateOnce(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.connectError(err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := tx.QueryRow(ctx, "select to_regnamespace($1) is not null", s.schema).Scan(&exists); err != nil {
		return err
	}
	if !exists { // "if not exists" needs the right to create a schema even if there is one
		if _, err := tx.Exec(ctx, "create schema "+s.schema); err != nil {
			return err
		}
	}
	if err := s.install(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// install creates what is missing in the schema.
func (s *Store) install(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	if err := tx.QueryRow(ctx, "select to_regclass($1) is not null", s.schema+".versions").Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := tx.Exec(ctx, "create table "+s.schema+".versions (version integer primary key, "+
			"at timestamptz not null default clock_timestamp())"); err != nil {
			return err
		}
	}
	have := 0
	read := "select coalesce(max(version), 0) from " + s.schema + ".versions"
	if err := tx.QueryRow(ctx, read).Scan(&have); err != nil || have >= version {
		return err
	}
	if _, err := tx.Exec(ctx, "lock table "+s.schema+".versions in exclusive mode"); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, read).Scan(&have); err != nil || have >= version {
		return err
	}
	script, err := s.script()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, script, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "insert into "+s.schema+".versions (version) values ($1)", version)
	return err
}

// script returns what creates version 1 of the schema.
func (s *Store) script() (string, error) {
	files, err := scripts.ReadDir("sql")
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := scripts.ReadFile("sql/" + file.Name())
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	names := strings.NewReplacer("@schema@", s.schema, "@channel@", literal(s.listener.channel))
	return names.Replace(all.String()), nil
}

// literal quotes a text for SQL.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// check returns an error that says what is missing for leases in this database.
func (s *Store) check(ctx context.Context) error {
	var standby, usage bool
	var schema *uint32
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.connectError(err)
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, `select pg_is_in_recovery(), to_regnamespace($1)::oid,
		coalesce(has_schema_privilege(to_regnamespace($1)::oid, 'usage'), false)`, s.schema).
		Scan(&standby, &schema, &usage)
	switch {
	case err != nil:
		return s.failure(ctx, err, false)
	case standby:
		return s.refusal(&pgconn.PgError{Code: codeReadOnly, Message: "it is in recovery"})
	case schema == nil:
		return s.missing("there is no such schema")
	case !usage:
		return s.denied("permission denied for schema " + s.schema)
	}
	var have int
	if err := conn.QueryRow(ctx, "select "+s.schema+".version()").Scan(&have); err != nil {
		return s.failure(ctx, err, false)
	}
	if have != version {
		return s.missing(fmt.Sprintf("its version is %d, and this program needs %d", have, version))
	}
	return nil
}

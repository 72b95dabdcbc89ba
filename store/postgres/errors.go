package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold"
)

// Codes of SQL errors that mean something special here.
const (
	codeReadOnly    = "25006"
	codeDenied      = "42501"
	codeNoSchema    = "3F000"
	codeNoTable     = "42P01"
	codeNoFunction  = "42883"
	codeLate        = "LH001" // of the function fence
	codeWarning     = "01000"
	codeNoDatabase  = "3D000"
	codeSerialize   = "40001"
	codeAuth        = "28000"
	codePassword    = "28P01"
	codeUnavailable = "55P03" // a lock was not granted in time
)

func unavailable(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf(format, args...)}
}

func undecided(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Undecided, Message: fmt.Sprintf(format, args...)}
}

// connectError is about a connection that could not be made: nothing was sent.
func (s *Store) connectError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case codeAuth, codePassword, codeDenied:
			return &leasehold.Error{Code: leasehold.Denied, Message: "PostgreSQL refuses the login: " + e.Message}
		case codeNoDatabase:
			return invalid("PostgreSQL: %s", e.Message)
		}
	}
	return unavailable("PostgreSQL cannot be reached: %s", oneLine(err))
}

// oneLine returns the text of an error of the driver, which has a line for each attempt, often the same.
func oneLine(err error) string {
	head, attempts, found := strings.Cut(err.Error(), "\n")
	if !found {
		return head
	}
	var lines []string
	for line := range strings.Lines(attempts) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return head + " " + strings.Join(lines, "; ")
}

// failure classifies the error of a call. committing says that the commit may have been executed.
func (s *Store) failure(ctx context.Context, err error, committing bool) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && !committing:
		return s.refusal(e)
	case ok:
		return undecided("PostgreSQL does not say whether the commit is durable: %s", e.Message)
	case pgconn.SafeToRetry(err):
		return unavailable("PostgreSQL cannot be reached: %s", oneLine(err))
	case ctx.Err() != nil:
		return fmt.Errorf("PostgreSQL has not answered: %w", context.Cause(ctx))
	}
	return undecided("the connection to PostgreSQL was lost before the answer: %v", err)
}

// refusal is an error of the server before the commit: nothing happened.
func (s *Store) refusal(e *pgconn.PgError) error {
	switch e.Code {
	case codeReadOnly:
		return unavailable("this PostgreSQL server is read-only (%s): it is a standby, or the role has "+
			"default_transaction_read_only; name the primary, or all servers and target_session_attrs=read-write",
			e.Message)
	case codeDenied:
		return s.denied(e.Message)
	case codeNoSchema, codeNoTable, codeNoFunction:
		return s.missing(e.Message)
	}
	return unavailable("PostgreSQL refused, and nothing happened: %s (SQLSTATE %s)", e.Message, e.Code)
}

func (s *Store) denied(why string) error {
	return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
		"PostgreSQL: %s: as the owner of the schema, run: grant usage on schema %s to ROLE; "+
			"grant execute on all functions in schema %s to ROLE", why, s.schema, s.schema)}
}

func (s *Store) missing(what string) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
		"the database is not set up for leases in the schema %s: %s: call postgres.Migrate, or open the store "+
			"once with migrate=yes in its URL, as a role that may create it", s.schema, what)}
}

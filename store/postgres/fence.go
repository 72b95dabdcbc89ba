package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

// A Querier is a transaction of the caller, such as a pgx.Tx.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

var _ Querier = pgx.Tx(nil)

// Fence binds a transaction of the caller to the lease of a pass, which the hold returns: until the
// transaction ends, nobody else is granted the resource, even if the lease ends meanwhile. If the lease has
// already ended, the error is a *fence.LateError and the transaction can only be rolled back. Renewals go on.
//
// The transaction must be in the database that keeps the leases. It may have any isolation level. At
// REPEATABLE READ and SERIALIZABLE, fence it with its first statement: a renewal since the transaction's
// snapshot fails it with a serialization failure (40001), and it has to be tried again.
//
// Keep such transactions short. Others wait for their end as long as it takes.
func (s *Store) Fence(ctx context.Context, tx Querier, pass fence.Pass) error {
	if err := checkName("resource of the pass", pass.Resource); err != nil {
		return err
	}
	if pass.Token == 0 || pass.Token > leasehold.MaxToken {
		return &fence.LateError{Resource: pass.Resource, Token: pass.Token}
	}
	_, err := tx.Exec(ctx, "select "+s.schema+".fence($1::bytea, $2::bytea, $3::bigint)",
		s.namespace, []byte(pass.Resource), int64(pass.Token))
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && e.Code == codeLate:
		return &fence.LateError{Resource: pass.Resource, Token: pass.Token}
	case ok && e.Code == codeDenied:
		return s.denied(e.Message)
	}
	return err
}

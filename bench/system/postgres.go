//go:build linux

package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

func startPostgres(on *stage.Stage, _ Config) *Server {
	p := peer.StartPostgres(on, peer.PostgresConfig{Args: []string{"-c", "fsync=on", "-c", "max_connections=1200"}})
	p.SQL("create table leases (name text primary key, holder text not null, until timestamptz not null)")
	return &Server{
		Version: p.SQL("show server_version"), Setup: "fsync and synchronous_commit on",
		Addresses: []string{p.URL()}, Nodes: []*peer.Server{&p.Server},
	}
}

type postgresClient struct{ *pgxpool.Pool }

func dialPostgres(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c, err := pgxpool.New(ctx, fmt.Sprint(s.Addresses[0], "&pool_max_conns=", max(1, d.Users)))
	if err == nil {
		err = c.Ping(ctx)
	}
	return postgresClient{c}, err
}

func (c postgresClient) Close() { c.Pool.Close() }

type postgresRow struct {
	pool         *pgxpool.Pool
	name, holder string
	ttl          time.Duration
}

func (c postgresClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.Wait {
		return c.lock(ctx, r.Name)
	}
	h := postgresRow{c.Pool, r.Name, rand.Text(), r.TTL}
	done, err := c.Exec(ctx, `insert into leases values ($1, $2, now() + $3)
		on conflict (name) do update set holder = excluded.holder, until = excluded.until where leases.until < now()`,
		h.name, h.holder, h.ttl)
	if err == nil && done.RowsAffected() == 0 {
		err = ErrHeld
	}
	return h, err
}

func (h postgresRow) Renew(ctx context.Context) error {
	done, err := h.pool.Exec(ctx,
		`update leases set until = now() + $3 where name = $1 and holder = $2 and until > now()`,
		h.name, h.holder, h.ttl)
	return lostUnless(done.RowsAffected() == 1, err)
}

func (h postgresRow) Release(ctx context.Context) error {
	done, err := h.pool.Exec(ctx, `delete from leases where name = $1 and holder = $2`, h.name, h.holder)
	return lostUnless(done.RowsAffected() == 1, err)
}

// A postgresLock lasts as long as its connection: it has no TTL, and is not on disk.
type postgresLock struct {
	conn *pgxpool.Conn
	name string
}

func (c postgresClient) lock(ctx context.Context, name string) (Hold, error) {
	conn, err := c.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		conn.Release()
		return nil, err
	}
	return postgresLock{conn, name}, nil
}

func (h postgresLock) Renew(context.Context) error { return errors.ErrUnsupported }

func (h postgresLock) Release(ctx context.Context) error {
	_, err := h.conn.Exec(ctx, `select pg_advisory_unlock(hashtextextended($1, 0))`, h.name)
	h.conn.Release()
	return err
}

// Fill makes many rows by one statement.
func (c postgresClient) Fill(ctx context.Context, prefix string, from, to int, until time.Time) error {
	for ; from < to; from += 1000 {
		_, err := c.Exec(ctx,
			`insert into leases select $1 || i, 'bench', $4 from generate_series($2::int, $3::int) i`,
			prefix, from, min(to, from+1000)-1, until)
		if err != nil {
			return err
		}
	}
	return nil
}

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	names, ids, err := split(r.Leases)
	if err != nil || len(names) == 0 {
		return err
	}
	sent := s.clock.Now()
	var now time.Time
	err = s.call(ctx, func(rows pgx.Rows) error { return rows.Scan(&now) },
		"select "+s.schema+".release($1::bytea, $2::bytea[], $3::bytea[])", s.namespace, names, ids)
	if err != nil {
		return err
	}
	s.observe(now, sent)
	return nil
}

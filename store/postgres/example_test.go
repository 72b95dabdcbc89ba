package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/store/postgres"
)

// What a holder writes to the same database is committed only if its lease is still alive.
func ExampleStore_Fence() {
	ctx := context.Background()
	url := "postgres://app@db.example/app"
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	s, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Open(ctx, s, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	hold, err := c.Acquire(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := s.Fence(ctx, tx, hold.Pass()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update reports set done = true")
		return err
	})
	if err != nil {
		log.Print(err)
	}
}

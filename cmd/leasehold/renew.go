package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) renewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "renew ID...",
		Short: "Make a lease last for its TTL from now",
		Long: `Renew makes a lease last for its whole TTL again, counted from now. It changes
nothing else: the token stays the same.

A lease that has ended is never revived: the command then ends with code 76, and
whatever the lease protected may belong to somebody else already. Renewing a lease
that is being broken, or that has reached its hold limit, does not move its end.

Renew at a third of the TTL, so that two renewals may fail before the lease is lost.`,
		Example: `  leasehold renew 4k2vqf7m
  leasehold renew "$id" --quiet -o name || exit            # inside a loop
  while sleep 10; do leasehold renew "$id" -q || kill $$; done &`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completes(-1, leaseIDs),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, ids []string) error { return a.renew(ctx, c, ids) })
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) renew(ctx context.Context, c *conn, ids []string) error {
	renew := func(id string) (v1.Lease, error) {
		lease, err := c.Renew(ctx, v1.RenewRequest{ID: id})
		return lease, c.explainLost(err)
	}
	return each(ids, renew, a.printLeases)
}

// explainLost is for commands that were given the id of a lease.
func (c *conn) explainLost(err error) error {
	if errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost) {
		return hint(err, "see who holds what now: %s", c.again("list", "-o", "wide"))
	}
	return err
}

package lease

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/agent"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Renew returns the command renew.
func Renew(a *cli.App) *cobra.Command {
	var note string
	var mine bool
	cmd := &cobra.Command{
		Use:   "renew ID...",
		Short: "Extend a lease by its TTL, from now",
		Long: `Renew makes a lease last for its whole TTL again, counted from now. It changes
nothing else: the token stays the same.

A lease that has ended is never revived: the command then ends with code 76, and
whatever the lease protected may belong to somebody else already. Renewing a lease
that is being broken, or that has reached its hold limit, does not move its end.

Renew at a third of the TTL, so that two renewals may fail before the lease is lost.

With --note the holder says how far it is, in at most 256 bytes, for those who look
with describe, list -o wide or top. A note stays until the next one, and until the
lease ends or gets another holder; --note '' takes it away.

With --mine it needs no id: it renews what the agent holds whose program runs it, for a
hook that runs after each of the agent's steps.`,
		Example: `  leasehold renew 4k2vqf7m
  leasehold renew 4k2vqf7m --note "epoch 3 of 10"
  leasehold renew "$id" --quiet -o name || exit            # inside a loop
  while sleep 10; do leasehold renew "$id" -q || kill $$; done &
  leasehold renew --mine --quiet                           # as an agent's hook`,
		Args: func(cmd *cobra.Command, args []string) error {
			if mine {
				return cli.Takes(0, 0)(cmd, args)
			}
			return cli.Takes(1, -1)(cmd, args)
		},
		ValidArgsFunction: a.Completes(-1, cli.LeaseIDs),
	}
	byID := a.Talk(func(ctx context.Context, c *cli.Conn, ids []string) error {
		request := v1.RenewRequest{}
		if cmd.Flags().Changed("note") {
			request.Note = &note
		}
		return renew(ctx, a, c, ids, request)
	})
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if mine {
			return agent.RenewMine(cmd.Context(), a, cmd)
		}
		return byID(cmd, ids)
	}
	cmd.Flags().BoolVar(&mine, "mine", false, "renew what the agent holds whose program runs this")
	cmd.Flags().StringVar(&note, "note", "", "how far you are, for those who look; '' takes it away")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func renew(ctx context.Context, a *cli.App, c *cli.Conn, ids []string, request v1.RenewRequest) error {
	renew := func(id string) (v1.Lease, error) {
		request.ID = id
		lease, err := c.Renew(ctx, request)
		return lease, explainLost(c, err)
	}
	return cli.Each(ids, renew, a.PrintLeases)
}

// explainLost adds a hint to the error of a command that was given the id of a lease.
func explainLost(c *cli.Conn, err error) error {
	if errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost) {
		return cli.Hint(err, "see who holds what now: %s", c.Again("list", "-o", "wide"))
	}
	return err
}

package resource

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/tui"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Top returns the command top.
func Top(a *cli.App) *cobra.Command {
	var query v1.ResourceQuery
	sorted := tui.Orders()[0]
	cmd := &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Watch leases and queues live, and break them",
		Long: `Top fills the terminal with the resources whose name begins with PREFIX, or all of
them: who holds each, why, when the lease ends unless it is renewed, and how many
wait. It counts down by itself and follows what happens.

Keys: up and down move, enter shows one resource with its queue, / filters, s sorts,
b breaks a lease after it has asked for a reason and a confirmation, ? explains the
rest, q quits. If the server goes away, top says so, keeps what it saw last and
comes back by itself.

It needs a terminal. Where there is none, "leasehold list --watch" shows the same.`,
		Example: `  leasehold top
  leasehold top prod/ --sort waiting
  leasehold top --holder 'ci@*' --state leased
  leasehold top --all -N team`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		query.Prefix = strings.Join(args, "")
		return tui.Run(ctx, a, c, tui.Options{Query: query, Order: sorted})
	})
	cmd.Flags().BoolVarP(&query.All, "all", "a", false, "also those that are simply available")
	cmd.Flags().Var(&cli.Choice{Value: &sorted, Allowed: tui.Orders(), Kind: "order"}, "sort",
		"what to begin with: "+strings.Join(tui.Orders(), ", "))
	cli.CompleteFlag(cmd, "sort", tui.Orders())
	cli.FilterFlags(cmd, &query.Filter)
	a.ClientFlags(cmd)
	return cmd
}

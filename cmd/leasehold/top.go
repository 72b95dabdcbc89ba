package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) topCommand() *cobra.Command {
	var all bool
	sorted := orderNames()[0]
	cmd := &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Watch leases and queues live, and break them",
		Long: `Top fills the terminal with the resources whose name begins with PREFIX, or all of
them: who holds each, why, for how much longer, and how many wait. It counts down by
itself and follows what happens.

Keys: up and down move, enter shows one resource with its queue, / filters, s sorts,
b breaks a lease after it has asked for a reason and a confirmation, ? explains the
rest, q quits. If the server goes away, top says so, keeps what it saw last and
comes back by itself.

It needs a terminal. Where there is none, "leasehold list --watch" shows the same.`,
		Example: `  leasehold top
  leasehold top prod/ --sort waiting
  leasehold top --all -N team`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		return a.top(ctx, c, topOptions{prefix: strings.Join(args, ""), all: all, order: sorted})
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that are simply available")
	cmd.Flags().Var(&choice{value: &sorted, allowed: orderNames(), kind: "order"}, "sort", "what to begin with: "+strings.Join(orderNames(), ", "))
	completeFlag(cmd, "sort", orderNames())
	a.clientFlags(cmd)
	return cmd
}

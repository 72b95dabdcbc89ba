package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Move returns the command move.
func Move(a *cli.App) *cobra.Command {
	var request v1.MoveRequest
	cmd := &cobra.Command{
		Use:   "move ID",
		Short: "Change the priority of a waiter",
		Long: `Move gives a waiter another priority: it then comes after those of the same
priority, and before all of smaller ones. The default priority is 0.

The id is that of the lease which the waiter will get; "leasehold queue NAME -o wide"
shows it. A waiter whose turn has come in the meantime cannot be moved,
and the command ends with code 64. To take a waiter out of the queue, break
it by its id through the API.`,
		Example: `  leasehold move 2m4kq1c9 --priority 10 --reason "the release is late"
  leasehold move 2m4kq1c9 --priority -10
  leasehold move "$(leasehold queue prod/deploy -o name | tail -1)" \
      --priority 10`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.WaiterIDs),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := cli.Needs(cmd, "priority", "say which, from -1000 to 1000"); err != nil {
			return err
		}
		request.ID, request.By = args[0], c.Operator()
		waiter, err := c.Move(ctx, request)
		if err != nil {
			return err
		}
		return printMoved(a, waiter)
	})
	cmd.Flags().IntVar(&request.Priority, "priority", 0, "larger ones go first, from -1000 to 1000 (required)")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the history")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printMoved(a *cli.App, waiter v1.Waiter) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(waiter)
	case cli.FormatName:
		return a.PrintLine(waiter.ID)
	}
	a.Say("moved: %s is at place %d", waiter.Holder, waiter.Position)
	return nil
}

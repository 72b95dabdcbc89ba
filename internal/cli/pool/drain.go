package pool

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// drain returns the command pool drain.
func drain(a *cli.App) *cobra.Command {
	var why string
	var resume bool
	cmd := &cobra.Command{
		Use:   "drain POOL UNIT...",
		Short: "Keep units from being granted, or let them be granted again",
		Long: `Drain keeps units from being granted. Who has one keeps it. With --resume they may be granted
again, if their host agrees.`,
		Example: `  leasehold pool drain gpu GPU-5f1c --reason "fan is loud"
  leasehold pool drain gpu GPU-5f1c --resume
  leasehold pool drain phones pixel-1 pixel-2 --reason "new batteries"`,
		Args: cli.Takes(2, 1000),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if resume == (why != "") {
			return cli.SeeHelp(cmd, cli.Usage("say why with --reason, or --resume"))
		}
		err := pools.Drain(ctx, c.Caller, args[0], pools.DrainRequest{Units: args[1:], Why: why, By: c.Operator()})
		if err != nil {
			return err
		}
		return showJSON(ctx, a, c, args[0])
	})
	cmd.Flags().StringVar(&why, "reason", "", "why they are not to be granted")
	cmd.Flags().BoolVar(&resume, "resume", false, "let them be granted again")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

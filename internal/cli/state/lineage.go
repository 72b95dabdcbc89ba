package state

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func allowLineage(a *cli.App) *cobra.Command {
	reason, last := "", cli.SpanOf(time.Hour)
	cmd := &cobra.Command{
		Use:   "allow-lineage STATE",
		Short: "Let Terraform replace a state by one of another lineage, once",
		Long: `Allow-lineage lets the next run that holds the lock replace a state by one of another
lineage. Terraform gives each project a lineage when it first writes its state; a state of
another lineage describes other things, so the server refuses it, even if somebody typed
-force: Terraform does not tell the server.

The permit is for the state as it is now: it ends when the state is written, and after an
hour at the latest, or what --for says. The former state stays among the versions. Who
allowed it, who used it and why are in leasehold audit.`,
		Example: `  leasehold state allow-lineage prod/network --reason "move from S3"
  terraform init -migrate-state -force-copy  # or: terraform state push -force F
  leasehold audit terraform/prod/network     # "another lineage was allowed"`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		err := cli.Needs(cmd, "reason", "others will want to know why the state was replaced")
		if err != nil {
			return err
		}
		asked := tfstate.Permit{By: c.Operator(), Reason: reason}
		if err := asked.Check(last.Value); err != nil {
			return cli.SeeHelp(cmd, err)
		}
		given, err := states(c).AllowLineage(ctx, args[0], asked, last.Value)
		switch {
		case err != nil:
			return stateless(c, args[0], err)
		case a.Output == cli.FormatJSON:
			return a.PrintJSON(given)
		}
		a.Say("%s accepts a state of another lineage once, for %s; then: terraform state push -force FILE, or "+
			"terraform init -migrate-state -force-copy", args[0], cli.Short(last.Value))
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history (required)")
	cmd.Flags().Var(&last, "for", "how long the permit lasts, from 1m to 24h")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Change returns the command change.
func Change(a *cli.App) *cobra.Command {
	var request v1.ChangeRequest
	cmd := &cobra.Command{
		Use:   "change ID",
		Short: "Hand a lease to another holder or id, without a gap",
		Long: `Change hands a lease on without letting go of it: nobody who waits can come between.

With --to-holder it belongs to somebody else from now on, and gets a new token, so
that what it protects can tell the two apart: show the new one from now on. With
--new-id it goes on under another id, so that only those who know that id can renew or
release it; the token stays.`,
		Example: `  leasehold change 4k2vqf7m --to-holder ann@laptop
  leasehold change 4k2vqf7m --new-id deploy-311-step-2
  id=$(leasehold change "$id" --to-holder night-shift --new-id "$next" -o name)`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.LeaseIDs),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if request.Holder == "" && request.NewID == "" {
			return cli.SeeHelp(cmd, cli.Usage("change needs --to-holder, --new-id, or both"))
		}
		request.ID = args[0]
		return change(ctx, a, c, request)
	})
	cmd.Flags().StringVar(&request.Holder, "to-holder", "", "the new holder")
	cmd.Flags().StringVar(&request.NewID, "new-id", "", "the lease's id from now on")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func change(ctx context.Context, a *cli.App, c *cli.Conn, request v1.ChangeRequest) error {
	lease, err := c.Change(ctx, request)
	if err != nil {
		return explainLost(c, err)
	}
	if err := a.PrintLeases([]v1.Lease{lease}); err != nil {
		return err
	}
	if request.Holder != "" {
		a.Say("token %d replaces the one before it: show it from now on", lease.Token)
	}
	return nil
}

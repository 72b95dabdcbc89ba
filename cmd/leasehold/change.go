package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) changeCommand() *cobra.Command {
	var request v1.ChangeRequest
	cmd := &cobra.Command{
		Use:   "change ID",
		Short: "Hand a lease to another holder or id, without a gap",
		Long: `Change hands a lease on without letting go of it: nobody who waits can come between.

With --to-holder it belongs to somebody else from now on, and gets a new token, so
that what it protects can tell the two apart: show the new one from now on. With
--new-id it goes on under another id, so that only who knows that id can renew or
release it; the token stays.`,
		Example: `  leasehold change 4k2vqf7m --to-holder ann@laptop
  leasehold change 4k2vqf7m --new-id deploy-311-step-2
  id=$(leasehold change "$id" --to-holder night-shift --new-id "$next" -o name)`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, leaseIDs),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if request.Holder == "" && request.NewID == "" {
			return seeHelp(cmd, usage("change needs --to-holder, --new-id, or both"))
		}
		request.ID = args[0]
		return a.change(ctx, c, request)
	})
	cmd.Flags().StringVar(&request.Holder, "to-holder", "", "who has it from now on")
	cmd.Flags().StringVar(&request.NewID, "new-id", "", "the lease's id from now on")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) change(ctx context.Context, c *conn, request v1.ChangeRequest) error {
	lease, err := c.Change(ctx, request)
	if err != nil {
		return c.explainLost(err)
	}
	if err := a.printLeases([]v1.Lease{lease}); err != nil {
		return err
	}
	if request.Holder != "" {
		a.say("token %d replaces the one before it: show it from now on", lease.Token)
	}
	return nil
}

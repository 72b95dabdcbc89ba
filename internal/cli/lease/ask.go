package lease

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Ask returns the command ask.
func Ask(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ask NAME MESSAGE",
		Short: "Send a message to the holder of a resource",
		Long: `Ask sends the holder of a resource a message, such as "please release". All who
watch the resource see it, the holder's own program included, and it stays in
the history. It changes nothing else: to end a lease there is "leasehold break".

If nobody holds the resource, the command ends with code 66.`,
		Example: `  leasehold ask prod/deploy "please, I need five minutes"
  leasehold ask gpu/3 "are you still training?" --holder ann
  leasehold watch prod/deploy            # where the holder sees it`,
		Args:              cli.Takes(2, -1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		request := v1.AskRequest{Resource: args[0], Message: strings.Join(args[1:], " "), By: c.Operator()}
		lease, err := c.Ask(ctx, request)
		if err != nil {
			return err
		}
		if err := a.PrintByResource(lease); err != nil {
			return err
		}
		a.Say("asked: %s, who holds %s", lease.Holder, lease.Resource)
		return nil
	})
	a.ClientFlags(cmd)
	a.SettingFlag(cmd, "holder", "")
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

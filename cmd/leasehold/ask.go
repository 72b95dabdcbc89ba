package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) askCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ask NAME MESSAGE",
		Short: "Send whoever holds a resource a message",
		Long: `Ask sends whoever holds a resource a message, such as "please release". Whoever
watches the resource sees it, the holder's own program among them, and it stays in
the history. It changes nothing else: to end a lease there is "leasehold break".

If nobody holds the resource, the command ends with code 66.`,
		Example: `  leasehold ask prod/deploy "please, I need five minutes"
  leasehold ask gpu/3 "are you still training?" --holder ann
  leasehold watch prod/deploy            # where the holder sees it`,
		Args:              takes(2, -1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		request := v1.AskRequest{Resource: args[0], Message: strings.Join(args[1:], " "), By: c.operator()}
		lease, err := c.Ask(ctx, request)
		if err != nil {
			return err
		}
		if err := a.printByResource(lease); err != nil {
			return err
		}
		a.say("asked: %s, who holds %s", lease.Holder, lease.Resource)
		return nil
	})
	a.clientFlags(cmd)
	settingFlag(cmd, "holder", "")
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about one resource: holder, queue, last end",
		Long: `Describe shows everything there is to see of one resource: who holds it, why, since
when and for how much longer; the token that is shown to what it protects; who
waits, in order, and when their turn usually comes; for how long it is usually held
and waited for; and how its last lease ended.

Of a resource that nobody has used there is only to say that it is available: any
name can be acquired.`,
		Example: `  leasehold describe prod/deploy
  leasehold describe prod/deploy -o wide                    # dates instead of "3m ago"
  leasehold describe prod/deploy -o json | jq '.queue[].holder'`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		resource, err := c.Resource(ctx, args[0], v1.MaxLimit)
		if err != nil {
			return err
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(resource)
		case formatName:
			return a.printLine(resource.Resource)
		}
		_, err = fmt.Fprint(a.stdout, a.describe(resource))
		return written(err)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

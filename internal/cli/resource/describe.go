package resource

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// described is a resource as JSON shows it: the server's answer, and the runs of a job of that name.
type described struct {
	v1.Resource
	Runs cli.Runs `json:"runs,omitzero"`
}

// pastRuns returns the runs of a job. That its record is something else is said, and is no reason to
// show nothing; nor is that a role has no right to records.
func pastRuns(ctx context.Context, a *cli.App, c *cli.Conn, name string) (cli.Runs, error) {
	if c.Store {
		return cli.Runs{}, nil
	}
	runs, err := cli.ReadRuns(ctx, c.Caller, name)
	if errors.Is(err, leasehold.ErrDenied) && !errors.Is(err, v1.ErrUnauthenticated) {
		return cli.Runs{}, nil
	}
	if errors.Is(err, leasehold.ErrRefused) {
		a.Say("when it last ran is not known: %v", err)
		return cli.Runs{}, nil
	}
	return runs, err
}

// Describe returns the command describe.
func Describe(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about one resource: holder, queue, last end",
		Long: `Describe shows everything there is to see of one resource: who holds it, why, since
when, and when the lease ends unless it is renewed; the token that is shown to what it protects; who
waits, in order, and when their turn usually comes; for how long it is usually held
and waited for; how its last lease ended; and, of a job that run --at-most-every runs,
when it last ran, on which machine and with which outcome.

A resource that nobody has used is shown as available: any name can be acquired.`,
		Example: `  leasehold describe prod/deploy
  leasehold describe prod/deploy -o wide          # dates instead of "3m ago"
  leasehold describe prod/deploy -o json | jq '.queue[].holder'`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		resource, err := c.Resource(ctx, args[0], v1.MaxLimit)
		if err != nil {
			return err
		}
		runs, err := pastRuns(ctx, a, c, args[0])
		if err != nil {
			return err
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(described{resource, runs})
		case cli.FormatName:
			return a.PrintLine(resource.Resource)
		}
		_, err = fmt.Fprint(a.Stdout, a.Describe(resource, runs))
		return cli.Written(err)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Release returns the command release.
func Release(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release ID...",
		Short: "Give a lease back, or leave the queue",
		Long: `Release gives a lease back, and the first in the queue gets it at the same moment. Given
the id of a request that still waits, it leaves the queue.

Releasing twice is safe: a lease id is used once, so the second release can never
take the resource from its next holder, and succeeds. A lease that
ended in another way, by time or by a break, is answered with code 76: it was not
yours until now, although you may have thought so.`,
		Example: `  leasehold release 4k2vqf7m
  leasehold release "$id" --quiet
  trap 'leasehold release "$id"' EXIT                       # in a script`,
		Args:              cli.Takes(1, -1),
		ValidArgsFunction: a.Completes(-1, cli.LeaseIDs),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, ids []string) error { return release(ctx, a, c, ids) })
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// A released lease has nothing left to show but its id.
type released struct {
	ID string `json:"id"`
}

func release(ctx context.Context, a *cli.App, c *cli.Conn, ids []string) error {
	release := func(id string) (released, error) {
		return released{id}, explainLost(c, c.Release(ctx, v1.ReleaseRequest{ID: id}))
	}
	return cli.Each(ids, release, func(done []released) error { return printReleased(a, done) })
}

func printReleased(a *cli.App, done []released) error {
	if a.Output == cli.FormatJSON {
		return cli.PrintMany(a, done)
	}
	for _, r := range done {
		if a.Output != cli.FormatName {
			a.Say("released %s", r.ID)
		} else if err := a.PrintLine(r.ID); err != nil {
			return err
		}
	}
	return nil
}

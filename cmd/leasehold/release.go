package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) releaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release ID...",
		Short: "Give a lease back, or leave the queue",
		Long: `Release gives a lease back, and whoever waits first has it in the same moment. Given
the id of a request that still waits, it leaves the queue.

Releasing twice is safe: a lease id is used once, so the second release can never
take the resource from its next holder, and is answered with yes. A lease that
ended in another way, by time or by a break, is answered with code 76: it was not
yours until now, although you may have thought so.`,
		Example: `  leasehold release 4k2vqf7m
  leasehold release "$id" --quiet
  trap 'leasehold release "$id"' EXIT                       # in a script`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completes(-1, leaseIDs),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, ids []string) error { return a.release(ctx, c, ids) })
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

// A released lease has nothing left to show but its id.
type released struct {
	ID string `json:"id"`
}

func (a *app) release(ctx context.Context, c *conn, ids []string) error {
	release := func(id string) (released, error) {
		return released{id}, c.explainLost(c.Release(ctx, v1.ReleaseRequest{ID: id}))
	}
	return each(ids, release, func(done []released) error { return a.printReleased(done) })
}

func (a *app) printReleased(done []released) error {
	if a.output == formatJSON {
		return printMany(a, done)
	}
	for _, r := range done {
		if a.output != formatName {
			a.say("released %s", r.ID)
		} else if err := a.printLine(r.ID); err != nil {
			return err
		}
	}
	return nil
}

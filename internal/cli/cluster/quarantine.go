package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func endQuarantine(a *cli.App) *cobra.Command {
	var r v1.EndQuarantineRequest
	var yes bool
	cmd := &cobra.Command{
		Use:   "end-quarantine",
		Short: "Grant leases again at once after a restore",
		Long: `End-quarantine ends the quarantine of a cluster that was restored from a backup: leases
are granted again at once, and those who wait have their turn, in order.

The quarantine is there because the former cluster may have granted leases after the
backup was taken. Their holders believe in them until they expire, and this cluster does
not know of them. End it only if you know that no such holder is left, because all of
their machines or programs were stopped. Otherwise two holders may believe that they
hold the same resource at the same time; then only fencing tokens protect it: every
token of this cluster is larger than all from before, and a store that checks tokens
refuses the former holder.

It needs a reason, which is kept in the audit. On a terminal it shows what it would do
and asks; elsewhere give --yes. It is idempotent: without a quarantine it does nothing.`,
		Example: `  leasehold cluster end-quarantine --reason "all workers were stopped"
  leasehold cluster end-quarantine --reason "all workers were stopped" --yes
  leasehold audit --verb end-quarantine      # who ended it, and why`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		err := cli.Needs(cmd, "reason", "say how you know that no lease granted after the backup is still held")
		if err != nil {
			return err
		}
		return endQuarantineShown(ctx, a, c, r, yes)
	})
	cmd.Flags().StringVar(&r.Reason, "reason", "", "how you know that no such lease is still held, for the "+
		"audit (required)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// endQuarantineShown ends the quarantine that it has shown: the request names the restore, so that it does
// not hit the quarantine of a later one.
func endQuarantineShown(ctx context.Context, a *cli.App, c *cli.Conn, r v1.EndQuarantineRequest, yes bool) error {
	before, err := c.Quarantine(ctx)
	if err != nil {
		return explain(c, err)
	}
	if !before.Active {
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(before)
		}
		a.Say("nothing to do: there is no quarantine, and leases are granted")
		return nil
	}
	if !yes {
		if err := confirmEnd(ctx, a, before); err != nil {
			return err
		}
	}
	r.By, r.TokensAbove = c.Operator(), before.TokensAbove
	after, err := c.EndQuarantine(ctx, r)
	if err != nil {
		return explain(c, err)
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(after)
	}
	a.Say("ended: leases are granted again, with tokens above %d", before.TokensAbove)
	return nil
}

// confirmEnd says what ending the quarantine risks, and asks.
func confirmEnd(ctx context.Context, a *cli.App, q v1.Quarantine) error {
	risk := fmt.Sprintf("holders of leases that were granted after the backup of %s may still believe in them for up "+
		"to %s", cli.Absolute(q.Backup.Time), cli.Short(time.Duration(*q.Remaining)))
	if !a.Terminal(a.Stdin) {
		return cli.Hint(cli.Usage("end-quarantine can let two holders believe in the same lease, and there is no "+
			"terminal to ask on: give --yes if you are sure"), "%s", risk)
	}
	fmt.Fprintf(a.Stderr, "This lets the cluster grant leases again at once. But %s: only stores that check fencing "+
		"tokens refuse them.\n", risk)
	return a.Confirm(ctx, "Do you know that none of them is left? [y/N] ", "y", "yes")
}

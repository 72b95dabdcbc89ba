package pool

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// create returns the command pool create.
func create(a *cli.App) *cobra.Command {
	var from, host, reason string
	cmd := &cobra.Command{
		Use:   "create POOL --from nvidia-smi|FILE|-",
		Short: "Say which units this host has",
		Long: `Create says which units of a pool one host has; the first host makes the pool. Units of
other hosts stay as they are, and the same units once more change nothing. A unit that is
missing from the list is removed: who has it keeps it until its lease ends.

With --from nvidia-smi the units are the cards of this machine by UUID, or the MIG
instances of a card that is split, with the labels model, name, memory (in GiB) and mig.
A file, or standard input for -, has a unit in each line: NAME key=value key=value.`,
		Example: `  leasehold pool create gpu --from nvidia-smi
  leasehold pool create phones --from phones.txt
  echo "pixel-1 os=android" | leasehold pool create phones --from -`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if from == "" {
			return cli.SeeHelp(cmd, cli.Usage("--from says where the units are read from: nvidia-smi, a file or -"))
		}
		units, err := inventory(ctx, from, a.Stdin)
		if err != nil {
			return err
		}
		if host == "" && from == nvidiaSMI {
			if host, err = os.Hostname(); err != nil {
				return fmt.Errorf("this machine does not say its name: give --host: %w", err)
			}
		}
		err = pools.SetUnits(ctx, c.Caller, args[0], pools.UnitsRequest{Host: host, Units: units, By: c.Operator(),
			Reason: reason})
		if err != nil {
			return err
		}
		a.Say("%s: %d units%s", args[0], len(units), onHost(host))
		return showJSON(ctx, a, c, args[0])
	})
	cmd.Flags().StringVar(&from, "from", "", "where the units are read from: nvidia-smi, a file, or - for standard "+
		"input")
	cmd.Flags().StringVar(&host, "host", "", "the host that has them (default: with nvidia-smi this machine, else "+
		"none)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// showJSON prints what a pool has become, for programs: people see it with pool status.
func showJSON(ctx context.Context, a *cli.App, c *cli.Conn, path string) error {
	if a.Output != cli.FormatJSON {
		return nil
	}
	pool, err := whole(ctx, c, path)
	if err != nil {
		return err
	}
	return a.PrintJSON(pool)
}

// onHost names a host in a sentence. Units such as licences belong to none.
func onHost(host string) string {
	if host == "" {
		return ""
	}
	return " on host " + host
}

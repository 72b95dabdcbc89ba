package run

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/cli"
)

// deviceVariables are where CUDA and ROCm look for the cards that they may use. Both take UUIDs.
var deviceVariables = []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}

// Pool returns the command pool run. It is run with other defaults: what is held are units, and the variables that
// name cards are set without being asked for.
func Pool(a *cli.App) *cobra.Command {
	f := runFlags{jobFlags: jobFlags{labels: cli.Labels{}, pool: true}}
	count := 0
	cmd := &cobra.Command{
		Use:   "run POOL [-n N] -- COMMAND [ARG]…",
		Short: "Run a command with units of a pool",
		Long: `Run waits for units of a pool, all or none and on one host, runs the command while it has
them, and gives them back when the command has ended. While it waits it says how many are
ahead, what it waits for, and how long that usually takes.

The command finds the names of its units, which for cards are their UUIDs, in
CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and LEASEHOLD_UNITS, with commas; with
--units-env in the variables that you name instead of the first two.

Everything else is as with leasehold run: terminal, signals, exit codes, what happens when
the server is gone or run itself is killed. See leasehold help run.`,
		Example: `  leasehold pool run gpu -n 2 --where model=H100 -- ./train
  leasehold pool run gpu --unit GPU-5f1c -w 30m -- ./train
  leasehold pool run phones --units-env ANDROID_SERIAL -- ./test`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.splitPool(cmd, args, count) },
		ValidArgsFunction: completes(a),
	}
	cmd.Flags().SetInterspersed(slices.Contains(a.Args, "--"))
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		if len(f.unitsEnv) == 0 {
			f.unitsEnv = deviceVariables
		}
		return runJob(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.IntVarP(&count, "units", "n", 0, "how many units to take (default 1, or as many as --unit names)")
	flags.BoolVar(&f.noWait, "no-wait", false, "if they are not free, end at once with code 75")
	flags.VarP(&f.wait, "wait", "w", "how long to wait in the queue at most (default: as long as it takes)")
	flags.IntVarP(&f.heldCode, "held-code", "E", cli.ExitHeld, "exit code to use if they are not free")
	f.addSelection(flags)
	f.jobFlags.add(a, cmd)
	a.ClientFlags(cmd)
	return cmd
}

// splitPool tells the pool from the command, and says how many units are meant.
func (f *runFlags) splitPool(cmd *cobra.Command, args []string, count int) (err error) {
	if f.names, f.argv, err = nameAndCommand(cmd, args); err != nil {
		return err
	}
	n := max(1, len(f.unit))
	switch {
	case len(f.names) > 1:
		err = cli.Usage("pool run takes one pool: leasehold run holds several resources at once")
	case cmd.Flags().Changed("units") && count < 1:
		err = cli.Usage("-n is %d: take 1 unit or more", count)
	case count > 0 && len(f.unit) > 0 && count != len(f.unit):
		err = cli.Usage("-n is %d and --unit names %d: leave -n out", count, len(f.unit))
	case count > 0:
		n = count
	}
	if err != nil {
		return cli.SeeHelp(cmd, err)
	}
	f.wanted.Slots = cli.Slots{N: n, Given: true}
	return nil
}

// why returns what a waiter of a pool waits for, such as a limit that it is over; empty if nobody can tell.
func (e *job) why(w client.Waiting) string {
	if !e.pool {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	pool, err := pools.Get(ctx, e.conn.Caller, w.Resource, pools.Query{Limit: 1, Queue: v1.MaxLimit})
	if err != nil {
		return ""
	}
	for _, waiter := range pool.Queue {
		if waiter.Holder == e.holder && waiter.Position == w.Position {
			return waiter.Why
		}
	}
	return ""
}

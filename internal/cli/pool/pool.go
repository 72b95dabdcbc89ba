// Package pool has the commands about pools: units with labels, on hosts.
//
// They set and show units. Who wants some takes them as it takes any other resource, by acquire or run: a pool is a
// resource, with a queue, breaks, messages and a history like all others, and needs no second way to be held.
//
// What a host has is told by that host: create replaces the list of one host, and can be run again at every start of a
// machine.
package pool

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// Command returns the command pool.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Share GPUs, phones or licences of several hosts",
		Long: `Pool is about resources whose slots are units with labels, on hosts. Units are set host by
host; who wants some says which are good enough, and gets all of them on one host, or waits.`,
		Example: `  leasehold pool create gpu --from nvidia-smi
  leasehold run gpu --slots 2 --where model=H100 -- ./train.sh
  leasehold pool status gpu`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(create(a), status(a), drain(a))
	return cmd
}

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

// status returns the command pool status.
func status(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status POOL",
		Short: "Show who has which units, and who waits for what",
		Long: `Status shows the units of a pool by host, who has them, which are not granted and why; then
who waits, in order, and what for.`,
		Example: `  leasehold pool status gpu
  leasehold pool status gpu -o json | jq '.free'
  leasehold pool status phones -N lab`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		pool, err := whole(ctx, c, args[0])
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(pool)
		}
		return printPool(a, &pool)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// whole reads a pool page by page.
func whole(ctx context.Context, c *cli.Conn, path string) (pools.Pool, error) {
	pool, err := pools.Get(ctx, c.Caller, path, pools.Query{Limit: 1000})
	for next := pool.Next; err == nil && next != ""; {
		var page pools.Pool
		if page, err = pools.Get(ctx, c.Caller, path, pools.Query{Limit: 1000, After: next}); err == nil {
			pool.Units, next = append(pool.Units, page.Units...), page.Next
		}
	}
	pool.Next = ""
	return pool, err
}

// printPool prints how many units there are of which kind, each unit, and who waits with what it waits for: the first
// question of those who wait is why.
func printPool(a *cli.App, pool *pools.Pool) error {
	err := a.PrintLine(fmt.Sprintf("%s: %d units, %d free, %d held, %d out", pool.Resource, pool.Total, pool.Free,
		pool.Held, pool.Out))
	if len(pool.Limits) > 0 && err == nil {
		err = a.PrintLine("limits: " + strings.Join(pool.Limits, ", "))
	}
	var rows [][]string
	for _, u := range pool.Units {
		holder := ""
		if u.Lease != "" {
			holder = u.Holder
		}
		rows = append(rows, []string{u.Host, u.Name, u.State, holder, u.Why, labelText(u.Labels)})
	}
	if err == nil {
		err = a.PrintTable([]cli.Column{{Name: "HOST"}, {Name: "UNIT"}, {Name: "STATE"}, {Name: "HOLDER"},
			{Name: "WHY"}, {Name: "LABELS", Flexible: true}}, rows)
	}
	for _, w := range pool.Queue {
		if err == nil {
			err = a.PrintLine(fmt.Sprintf("%d. %s %s", w.Position, w.Holder, w.Why))
		}
	}
	return err
}

// labelText writes labels as --where compares them, in an order that does not change from one look to the next.
func labelText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, " ")
}

// drain returns the command pool drain.
func drain(a *cli.App) *cobra.Command {
	var why string
	var resume bool
	cmd := &cobra.Command{
		Use:   "drain POOL UNIT...",
		Short: "Keep units from being granted, or let them be granted again",
		Long: `Drain keeps units from being granted. Who has one keeps it. With --resume they may be granted
again, if their host agrees.`,
		Example: `  leasehold pool drain gpu GPU-5f1c --reason "fan is loud"
  leasehold pool drain gpu GPU-5f1c --resume
  leasehold pool drain phones pixel-1 pixel-2 --reason "new batteries"`,
		Args: cli.Takes(2, 1000),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if resume == (why != "") {
			return cli.SeeHelp(cmd, cli.Usage("say why with --reason, or --resume"))
		}
		err := pools.Drain(ctx, c.Caller, args[0], pools.DrainRequest{Units: args[1:], Why: why, By: c.Operator()})
		if err != nil {
			return err
		}
		return showJSON(ctx, a, c, args[0])
	})
	cmd.Flags().StringVar(&why, "reason", "", "why they are not to be granted")
	cmd.Flags().BoolVar(&resume, "resume", false, "let them be granted again")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

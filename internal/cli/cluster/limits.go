package cluster

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func limits(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show the limits of the cluster, and how much is used",
		Long: `Limits shows how many leases, sessions, waiters and namespaces there are in the cluster,
in all namespaces together, and how many there may be. What is new is refused beyond a
limit; renewals, releases and hand-overs to waiters never are. There can be more than a
limit allows after it was lowered, or after waiters were granted what they waited for.`,
		Example: `  leasehold cluster limits
  leasehold cluster limits -o json | jq .leases.used
  leasehold cluster limits set --leases 2000000`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		limits, err := c.Limits(ctx)
		if err != nil {
			return err
		}
		return printLimits(a, limits)
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	cmd.AddCommand(setLimits(a))
	return cmd
}

func setLimits(a *cli.App) *cobra.Command {
	var r v1.LimitsRequest
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change limits of the cluster",
		Long: `Set changes limits of the cluster, and shows them. Those that are not named stay as they
are. Nothing ends by it: where there is more than a limit allows, nothing new is admitted
until there is less.`,
		Example: `  leasehold cluster limits set --leases 2000000
  leasehold cluster limits set --sessions 50000 --waiters 50000 \
      --reason "one tenant went wild"
  leasehold cluster limits set --namespaces 100 -o json`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if r.Leases == 0 && r.Sessions == 0 && r.Waiters == 0 && r.Namespaces == 0 {
			return cli.Usage("name a limit to change: --leases, --sessions, --waiters or --namespaces")
		}
		r.By = c.Operator()
		limits, err := c.SetLimits(ctx, r)
		if err != nil {
			return err
		}
		return printLimits(a, limits)
	})
	cmd.Flags().IntVar(&r.Leases, "leases", 0, "leases that there may be")
	cmd.Flags().IntVar(&r.Sessions, "sessions", 0, "sessions that there may be")
	cmd.Flags().IntVar(&r.Waiters, "waiters", 0, "waiters that there may be")
	cmd.Flags().IntVar(&r.Namespaces, "namespaces", 0, "namespaces that there may be")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the audit")
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func printLimits(a *cli.App, limits v1.Limits) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(limits)
	}
	columns := []cli.Column{{Name: "LIMIT"}, {Name: "USED", Right: true}, {Name: "ALLOWED", Right: true},
		{Name: "STATE"}}
	var rows [][]string
	for _, l := range []struct {
		name string
		v1.Limit
	}{{"leases", limits.Leases}, {"sessions", limits.Sessions}, {"waiters", limits.Waiters}, {"namespaces",
		limits.Namespaces}} {
		rows = append(rows, []string{l.name, strconv.Itoa(l.Used), strconv.Itoa(l.Allowed), fullness(l.Limit)})
	}
	return a.PrintTable(columns, rows)
}

// fullness returns how near something is to its limit.
func fullness(l v1.Limit) string {
	switch {
	case l.Used >= l.Allowed:
		return "full: new ones are refused"
	case l.Used >= l.Allowed-l.Allowed/10:
		return fmt.Sprintf("%d %% used", 100*l.Used/l.Allowed)
	}
	return ""
}

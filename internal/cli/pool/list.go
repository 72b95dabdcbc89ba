package pool

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// list returns the command pool list. Pools that definitions make are not in it: they have no hosts, and leasehold
// definitions shows them.
func list(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List pools",
		Long: `List shows the pools whose names begin with a prefix, or all: how many hosts and units they
have, and how many of the units are free, held, or out because they are drained, unfit or at rest.`,
		Example: `  leasehold pool list
  leasehold pool list lab/
  leasehold pool list -o json | jq '.[].free'`,
		Args: cli.Takes(0, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		all, err := allPools(ctx, c, append(args, "")[0])
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(all)
		}
		columns := []cli.Column{{Name: "POOL", Flexible: true}, {Name: "HOSTS"}, {Name: "UNITS"}, {Name: "FREE"},
			{Name: "HELD"}, {Name: "OUT"}, {Name: "WAITING"}}
		var rows [][]string
		for _, p := range all {
			row := []string{p.Resource}
			for _, n := range []int{p.Hosts, p.Total, p.Free, p.Held, p.Out, p.Waiting} {
				row = append(row, strconv.Itoa(n))
			}
			rows = append(rows, row)
		}
		return a.PrintTable(columns, rows)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// allPools reads the list page by page. It is never nil, so that no pools are [] in JSON.
func allPools(ctx context.Context, c *cli.Conn, prefix string) ([]pools.Counts, error) {
	all := []pools.Counts{}
	for after := ""; ; {
		page, err := pools.List(ctx, c.Caller, prefix, after)
		if err != nil {
			return nil, err
		}
		if all, after = append(all, page.Items...), page.Next; after == "" {
			return all, nil
		}
	}
}

package resource

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Namespaces returns the command namespaces.
func Namespaces(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespaces [PREFIX]",
		Short: "List namespaces",
		Long: `Namespaces lists the namespaces whose name begins with PREFIX, or all of them, as far as
you may do anything in them. A namespace exists from the first thing that is done in it,
and is forgotten some time after the last.`,
		Example: `  leasehold namespaces
  leasehold namespaces team-
  leasehold namespaces -o json`,
		Args: cli.Takes(0, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		query := v1.NamespaceQuery{Limit: v1.MaxLimit}
		if len(args) == 1 {
			query.Prefix = args[0]
		}
		list := []v1.Namespace{}
		for n, err := range c.Namespaces(ctx, query) {
			if err != nil {
				return err
			}
			list = append(list, n)
		}
		return printNamespaces(a, list)
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printNamespaces(a *cli.App, list []v1.Namespace) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(list)
	case len(list) == 0:
		a.Say("no namespaces")
		return nil
	}
	for _, n := range list {
		if err := a.PrintLine(n.Namespace); err != nil {
			return err
		}
	}
	return nil
}

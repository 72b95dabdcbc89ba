package cluster

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
)

// Command returns the command cluster, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the servers of a cluster, add and remove some",
		Long: `Cluster shows and changes the servers of a cluster: who belongs to it, who leads, who is
behind or away, and what to do about it. Three servers go on while one is away, five
while two are; a server that was added has no vote until it has caught up.

You can ask any of the servers. Each change goes through the log like everything else:
when a command says that it is done, it is durable.`,
		Example: `  leasehold cluster status
  leasehold cluster remove n2
  leasehold cluster transfer n3`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(status(a), addServer(a), promoteServer(a), removeServer(a), transferLead(a),
		upgrade(a), limits(a), endQuarantine(a))
	return cmd
}

// explain adds where to look next to an error.
func explain(c *cli.Conn, err error) error {
	var e *leasehold.Error
	if errors.As(err, &e) {
		switch e.Code {
		case leasehold.NotFound:
			return cli.Hint(err, "see who belongs to it: %s", c.Again("cluster", "status"))
		case leasehold.Refused, leasehold.Undecided, leasehold.Unavailable:
			return cli.Hint(err, "see their health: %s", c.Again("cluster", "status"))
		}
	}
	return err
}

// serverNames returns the names of the cluster's servers, for completion.
func serverNames(ctx context.Context, c *cli.Conn, _ string) (list []cobra.Completion) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	for _, s := range cluster.Servers {
		list = append(list, cobra.CompletionWithDesc(s.Name, cli.Printable(role(cluster, s)+", "+health(s))))
	}
	return list
}

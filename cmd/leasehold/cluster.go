package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at the servers of a cluster, take some in, let some go",
		Long: `Cluster is about the servers that are one: who belongs to them, who leads, who is
behind or away, and what to do about it. Three servers go on while one is away, five
while two are; a server that was added has no vote until it has caught up.

Any of the servers can be asked. Each change goes through the log like everything
else: when a command says that it is done, it is.`,
		Example: `  leasehold cluster status
  leasehold cluster remove n2
  leasehold cluster transfer n3`,
		Args: cobra.ArbitraryArgs,
		RunE: a.onlySubcommands,
	}
	cmd.AddCommand(a.clusterStatusCommand(), a.clusterAddCommand(), a.clusterPromoteCommand(), a.clusterRemoveCommand(), a.clusterTransferCommand(),
		a.clusterUpgradeCommand(), a.clusterLimitsCommand())
	return cmd
}

// explainCluster adds where to look.
func (c *conn) explainCluster(err error) error {
	var e *leasehold.Error
	if errors.As(err, &e) {
		switch e.Code {
		case leasehold.NotFound:
			return hint(err, "see who belongs to it: %s", c.again("cluster", "status"))
		case leasehold.Refused, leasehold.Undecided, leasehold.Unavailable:
			return hint(err, "see how they do: %s", c.again("cluster", "status"))
		}
	}
	return err
}

// serverNames are those of the cluster's servers.
func serverNames(ctx context.Context, c *conn, _ string) (list []cobra.Completion) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	for _, s := range cluster.Servers {
		list = append(list, cobra.CompletionWithDesc(s.Name, printable(role(cluster, s)+", "+health(s))))
	}
	return list
}

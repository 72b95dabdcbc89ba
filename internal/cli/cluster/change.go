package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func upgrade(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Raise the level of the cluster, once all servers run a newer version",
		Long: `Upgrade raises the level of the cluster: the rules by which all servers decide, and with
them what a newer version brought. Until then, servers of two versions work side by
side, and each can go back to the older one.

It is refused while some server does not know the level that others know. A level is
never lowered: afterwards, versions that do not know it refuse the data, and are
refused by the other servers. A new cluster begins at the newest level.`,
		Example: `  leasehold cluster status -o wide      # which levels each server knows
  leasehold cluster upgrade
  leasehold cluster upgrade -o json`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		before, err := c.Cluster(ctx)
		if err != nil {
			return explain(c, err)
		}
		level, err := c.UpgradeCluster(ctx)
		if err != nil {
			return explain(c, err)
		}
		switch {
		case a.Output == cli.FormatJSON:
			return a.PrintJSON(level)
		case level.Level == before.Level:
			a.Say("nothing to do: the cluster is already at level %d, the newest that all servers know", level.Level)
		default:
			a.Say("raised: the cluster went from level %d to level %d", before.Level, level.Level)
		}
		return nil
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func removeServer(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "End the membership of a server for good",
		Long: `Remove ends the membership of a server. If it runs, it says so and stops; if it was
away, it hears so when it comes back. Its data can no longer be used in this cluster,
and its id is never given to another; its name may be.

What the cluster keeps is not touched, and no lease ends. A removal that would leave
the cluster without a majority is refused. To replace a server, remove it, prepare a
place for another one with cluster add, and start that with --join.

On a terminal it shows what it would do and asks; elsewhere give --yes.`,
		Example: `  leasehold cluster remove n2
  leasehold cluster remove n2 --yes
  leasehold cluster remove n2 --yes && leasehold cluster status`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, serverNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if !yes {
			if err := confirmRemoval(ctx, a, c, args[0]); err != nil {
				return err
			}
		}
		if err := c.RemoveServer(ctx, args[0]); err != nil {
			return explain(c, err)
		}
		a.Say("removed: %s no longer belongs to the cluster", args[0])
		return printChange(a, change{Name: args[0], Removed: true})
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// A change is what happened to a server, for programs.
type change struct {
	Name    string `json:"name"`
	Voter   bool   `json:"voter"`
	Removed bool   `json:"removed"`
}

func printChange(a *cli.App, c change) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(c)
	case cli.FormatName:
		return a.PrintLine(c.Name)
	}
	return nil
}

// confirmRemoval shows which server would be removed, and asks. Without a terminal it refuses: a
// script has to say --yes.
func confirmRemoval(ctx context.Context, a *cli.App, c *cli.Conn, name string) error {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	for _, s := range cluster.Servers {
		if s.Name != name {
			continue
		}
		what := fmt.Sprintf("%s (%s, %s) at %s", s.Name, role(cluster, s), health(s), s.Peer)
		if !a.Terminal(a.Stdin) {
			return cli.Hint(cli.Usage("remove ends a membership for good, and there is no terminal to ask on: give "+
				"--yes if you are sure"), "it would remove %s", what)
		}
		fmt.Fprintf(a.Stderr, "This will remove %s for good.\n%s\n", cli.Printable(what), afterwards(cluster, s))
		return a.Confirm(ctx, "Remove it? [y/N] ", "y", "yes")
	}
	return explain(c, cli.Failure(leasehold.NotFound, "there is no server called %s", name))
}

// afterwards describes the cluster without a server, so that the person sees beforehand whether it
// would still have a majority.
func afterwards(c v1.Cluster, gone v1.Server) string {
	voters, up := 0, 0
	for _, s := range c.Servers {
		if s.Voter && s.ID != gone.ID {
			voters++
			if s.Reachable {
				up++
			}
		}
	}
	return fmt.Sprintf("Then %d of %s up, and %d are needed.", up, cli.Plural(voters, "voter is", "voters are"),
		voters/2+1)
}

func transferLead(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfer [NAME]",
		Short: "Give the lead to another server",
		Long: `Transfer gives the lead to a server, or without a name to the best one. Nothing
is lost: requests that come meanwhile wait for some milliseconds, and no lease ends.

A server that is told to stop does so by itself. This is for moving the lead away from
a machine that is slow, or about to be worked on.`,
		Example: `  leasehold cluster transfer
  leasehold cluster transfer n3
  leasehold cluster transfer n3 -o name`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Asks(1, serverNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		lead, err := c.TransferLead(ctx, v1.TransferRequest{To: strings.Join(args, "")})
		if err != nil {
			return explain(c, err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(lead)
		case cli.FormatName:
			return a.PrintLine(lead.Leader)
		}
		a.Say("%s leads", lead.Leader)
		return nil
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func addServer(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME HOST:PORT",
		Short: "Prepare a place in the cluster for a server",
		Long: `Add prepares a place in the cluster for a server, by its name and the address at which
the other servers will reach it. It has no vote until it runs and has caught up, and so
can do no harm; the leader then gives it its vote by itself.

Only a server that has a place can join: one that is started with --join and has none
waits for it, and says in its log what to do. The place belongs to the first server of
its name that comes for it; with certificates, that has to have one for the name. Adding
a server that is already a member changes nothing.`,
		Example: `  leasehold cluster add n4 10.0.0.4:4654
  leasehold cluster add n4 10.0.0.4:4654 -o json | jq .id
  leasehold cluster add n4 10.0.0.4:4654 && leasehold cluster status`,
		Args: cli.Takes(2, 2),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		server, err := c.AddServer(ctx, v1.ServerRequest{Name: args[0], Peer: args[1]})
		if err != nil {
			return explain(c, err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(server)
		case cli.FormatName:
			return a.PrintLine(server.Name)
		}
		if server.Voter {
			a.Say("%s is a member already, with a vote", server.Name)
			return nil
		}
		a.Say("added: %s is a learner, and has no vote until it has caught up", server.Name)
		a.Say("start it, with certificates or --insecure as the others: leasehold serve --name %s --listen %s "+
			"--peer-listen %s --join %s", cli.Quote(server.Name), cli.Quote(clientAddress(server.Peer)),
			cli.Quote(server.Peer), somePeers(ctx, c, server.Name))
		return nil
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// clientAddress returns where clients will reach a server whose peer address is known: on the same
// host. Left out, it would be loopback, where no other machine reaches it.
func clientAddress(peer string) string {
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		return "HOST:4653"
	}
	return net.JoinHostPort(host, "4653")
}

// somePeers returns addresses of voters, which a new server can ask to be admitted.
func somePeers(ctx context.Context, c *cli.Conn, but string) string {
	var peers []string
	if cluster, err := c.Cluster(ctx); err == nil {
		for _, s := range cluster.Servers {
			if s.Name != but && s.Voter {
				peers = append(peers, s.Peer)
			}
		}
	}
	if len(peers) == 0 {
		return "HOST:PORT"
	}
	return strings.Join(peers, ",")
}

func promoteServer(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote NAME",
		Short: "Give a server its vote",
		Long: `Promote gives a learner its vote. It is refused while the learner is too far behind: a
voter that knows too little would only delay the others.

The leader does so by itself for servers that have caught up, within a second or two;
this is for when you cannot wait, or want to know why it does not.`,
		Example: `  leasehold cluster promote n4
  leasehold cluster promote n4 -q || leasehold cluster status
  leasehold cluster promote n4 --server http://10.0.0.1:4653`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, serverNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := c.PromoteServer(ctx, args[0]); err != nil {
			return explain(c, err)
		}
		a.Say("promoted: %s has a vote", args[0])
		return printChange(a, change{Name: args[0], Voter: true})
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

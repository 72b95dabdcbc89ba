package agent

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/node"
)

// A serverFunc runs a server until its context ends, as node.Run does.
type serverFunc = func(ctx context.Context, c node.Config, ready func(node.Serving)) error

// MCP returns the command mcp.
func MCP(a *cli.App) *cobra.Command {
	var local string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give an agent the tools to take leases, on its standard input and output",
		Long: `Mcp speaks the Model Context Protocol on standard input and output: an agent's program
starts it, as "leasehold setup" tells it to, and the agent finds the tools lease_acquire,
lease_check, lease_release, lease_list and lease_ask.

It asks the server that flags, variables or your context name. If they name none, it
joins the server that your other agents use, or the one at the usual address, or starts
one: always the same for all, so that two agents never believe to hold the same thing. A
server that it started listens on loopback, keeps its data in your state directory, and
ends 10 minutes after the last agent; what was held then is held again at the next start.

An agent is called after you and the process, and what it holds ends with it. Give it a
name of its own with --holder or LEASEHOLD_HOLDER, and what it holds outlives its process,
until its TTL: the next process with that name goes on with it.`,
		Example: `  leasehold mcp
  leasehold mcp --holder reviewer
  leasehold mcp --server https://10.0.0.1:4653 --namespace team-a`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runMCP(a, cmd, local) }
	a.ClientFlags(cmd)
	a.SettingFlag(cmd, "holder", "")
	cmd.Flags().StringVar(&local, "local", cli.UsualAddress, "loopback address for a server that all your agents "+
		"share, if it has to be started")
	return cmd
}

// runMCP joins the agent at standard input to a server until it leaves. Nothing but the protocol may be written to
// standard output; what people should know goes to standard error, which agents' programs keep in a log.
func runMCP(a *cli.App, cmd *cobra.Command, local string) error {
	client, err := a.ClientSettings(cmd)
	if err != nil {
		return err
	}
	place, err := locate(cmd.Context(), a, cmd, client, local)
	if err != nil {
		return err
	}
	defer place.leave()
	b := newBridge(a, place, client.Holder)
	if err := b.connect(cmd.Context()); err != nil {
		return cli.Failure(leasehold.Unavailable, "%s gives agents no tools: %v", place.url(), err)
	}
	if err := b.register(); err != nil {
		a.Say("the hook \"leasehold renew --mine\" will not find this agent: %v", err)
	}
	defer b.end()
	return b.serve(cmd.Context())
}

// idleTime is how long a server stays that was started for agents, after the last of them.
const idleTime = 10 * time.Minute

// ServerName is the first argument of the process that serves all agents of a user. It is no command for people: mcp
// starts it, with an address and how long it stays when it is alone.
const ServerName = "mcp-server"

// Server runs the server that agents share, and returns the exit code.
func Server(a *cli.App, serve serverFunc, listen, idle string) int {
	stays, err := time.ParseDuration(idle)
	if err == nil {
		meant := func() bool { return true }
		ctx, stop := cli.UntilSignalIf(context.Background(), meant, syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = serveAgents(ctx, a, serve, listen, stays)
	}
	if err != nil {
		a.Report(err)
	}
	return cli.ExitCode(err)
}

// serveAgents runs the server that agents share. Its settings are its own: those in the environment and in files may
// be about a real one.
func serveAgents(ctx context.Context, a *cli.App, serve serverFunc, listen string, idle time.Duration) error {
	dir, err := stateDir(a.Getenv)
	if err != nil {
		return err
	}
	settings, _, err := config.ForServer(config.Sources{Doors: a.Doors, Flags: map[string]string{
		"listen": listen, "data": dir.File("data"), "min-free": "16MiB", "drain-linger": "0s", "log-level": "warn",
	}})
	if err != nil {
		return cli.Usage("%v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The address is written once clients are let in, and goes before the server does: who finds it can use it.
	defer dir.Withdraw()
	go dir.untilAlone(ctx, idle, cancel)
	return serve(ctx, node.Config{Server: settings.Server, Version: a.Version, Log: a.Stderr}, func(s node.Serving) {
		if err := dir.Publish("http://" + s.Address); err != nil {
			fmt.Fprintln(a.Stderr, err)
			cancel()
		}
	})
}

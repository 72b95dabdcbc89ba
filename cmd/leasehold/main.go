// Command leasehold is the server and the command line of Leasehold.
//
// This package is the table of contents: internal/cli is the frame of all commands, and
// each noun has a package below it. The stories in testdata hold what people type, read
// and script against.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/access"
	"github.com/leasehold/leasehold/internal/cli/agent"
	"github.com/leasehold/leasehold/internal/cli/azure"
	"github.com/leasehold/leasehold/internal/cli/cert"
	"github.com/leasehold/leasehold/internal/cli/cluster"
	"github.com/leasehold/leasehold/internal/cli/journal"
	"github.com/leasehold/leasehold/internal/cli/kubernetes"
	"github.com/leasehold/leasehold/internal/cli/lease"
	"github.com/leasehold/leasehold/internal/cli/login"
	"github.com/leasehold/leasehold/internal/cli/pool"
	"github.com/leasehold/leasehold/internal/cli/record"
	"github.com/leasehold/leasehold/internal/cli/reserve"
	"github.com/leasehold/leasehold/internal/cli/resource"
	"github.com/leasehold/leasehold/internal/cli/run"
	"github.com/leasehold/leasehold/internal/cli/server"
	"github.com/leasehold/leasehold/internal/cli/state"
	"github.com/leasehold/leasehold/internal/cli/task"
	"github.com/leasehold/leasehold/internal/cli/terraform"
	"github.com/leasehold/leasehold/internal/cli/token"
	"github.com/leasehold/leasehold/internal/node"
)

func main() { os.Exit(execute()) }

// execute is main for the tests as well, so that they start what users start. The guard, the
// gate and the server of agents come first: they are this program too, but must not parse flags or connect to anything.
func execute() int {
	if len(os.Args) == 2 && os.Args[1] == run.GuardName {
		run.Guard()
		return 0
	}
	if len(os.Args) > 2 && os.Args[1] == run.AwaitName {
		return run.Await(os.Args[2:])
	}
	if len(os.Args) > 2 && os.Args[1] == run.GateName {
		return child.Begin(os.Args[2:])
	}
	if len(os.Args) == 4 && os.Args[1] == agent.ServerName {
		p := newProgram()
		return agent.Server(p.App, p.Serve, os.Args[2], os.Args[3])
	}
	cobra.EnableCommandSorting = false // contents has an order
	return newProgram().execute(os.Args[1:])
}

// A program is the command line with what it starts.
type program struct {
	*cli.App
	server.Outside
}

// newProgram returns the program as users start it.
func newProgram() *program {
	p := &program{cli.New(), server.RealOutside()}
	p.Version, p.Doors = buildVersion(), node.Settings()
	return p
}

func (p *program) execute(args []string) int { return p.App.Run(args, p.root) }

func (p *program) root() *cobra.Command { return p.Root(p.contents()) }

// contents lists every command, by what people want to do and in the order of a lease's
// life.
func (p *program) contents() []cli.Chapter {
	a := p.App
	return []cli.Chapter{
		{Title: "Hold a lease", Commands: []*cobra.Command{
			run.Run(a), run.Elect(a), run.Claim(a),
			lease.Acquire(a), lease.Renew(a), lease.Release(a), lease.Change(a), reserve.Reserve(a),
		}},
		{Title: "See what is going on", Commands: []*cobra.Command{
			resource.List(a), resource.Describe(a), resource.Queue(a), resource.Top(a), resource.Session(a),
			resource.Namespaces(a), reserve.List(a),
			resource.Watch(a), resource.History(a), journal.Audit(a), journal.Holds(a),
		}},
		{Title: "Intervene", Commands: []*cobra.Command{
			lease.Break(a), lease.Ask(a), lease.Move(a), lease.Acknowledge(a),
		}},
		{Title: "Set rules for resources", Commands: []*cobra.Command{
			resource.Define(a), resource.Undefine(a), resource.Definitions(a), lease.Advise(a), pool.Command(a),
			task.Command(a),
		}},
		{Title: "Keep records", Commands: []*cobra.Command{
			record.Get(a), record.Put(a), record.Delete(a), record.List(a), record.Versions(a), record.Rollback(a),
		}},
		{Title: "Use Terraform, Azure or Kubernetes clients", Commands: []*cobra.Command{
			terraform.Command(a), state.Command(a), azure.Command(a), kubernetes.Command(a),
		}},
		{Title: "Let agents work", Commands: []*cobra.Command{
			agent.MCP(a), agent.Setup(a), agent.Prime(a), agent.Guard(a),
		}},
		{Title: "Operate a server", Commands: []*cobra.Command{
			server.Serve(a, p.Outside), server.Demo(a, p.Outside), server.Config(a),
			server.Doors(a), server.Connect(a),
			server.Alarms(a, lease.Acknowledge(a)), server.Doctor(a), server.Backup(a, p.Outside), server.Restore(a),
			server.Check(a, p.Outside), server.Bench(a),
			token.Command(a),
		}},
		{Title: "Say who may do what", Commands: []*cobra.Command{
			access.Command(a, server.Recover(a)), login.Login(a), login.Logout(a), login.Context(a),
		}},
		{Title: "Run a cluster", Commands: []*cobra.Command{
			cluster.Command(a), cert.Command(a),
		}},
		{Title: "Other", Commands: []*cobra.Command{
			server.Version(a), a.Completion(),
		}},
	}
}

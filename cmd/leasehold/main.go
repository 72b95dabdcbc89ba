// Command leasehold is the server and the command line of Leasehold.
//
// Each subcommand has a file of its own and little in it: what is decided, the
// server decides. What a person types, reads and scripts against is decided
// here, and the stories in testdata hold it: data goes to standard output, talk
// to standard error, and every exit code has one meaning.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/azure"
	"github.com/leasehold/leasehold/internal/cli/cert"
	"github.com/leasehold/leasehold/internal/cli/cluster"
	"github.com/leasehold/leasehold/internal/cli/journal"
	"github.com/leasehold/leasehold/internal/cli/lease"
	"github.com/leasehold/leasehold/internal/cli/record"
	"github.com/leasehold/leasehold/internal/cli/resource"
	"github.com/leasehold/leasehold/internal/cli/run"
	"github.com/leasehold/leasehold/internal/cli/server"
	"github.com/leasehold/leasehold/internal/cli/state"
	"github.com/leasehold/leasehold/internal/cli/terraform"
)

func main() { os.Exit(execute()) }

// execute is main for the tests as well, so that they start what users start.
func execute() int {
	if len(os.Args) == 2 && os.Args[1] == run.GuardName {
		child.Guard(os.Stdin)
		return 0
	}
	if len(os.Args) > 2 && os.Args[1] == run.GateName {
		return child.Begin(os.Args[2:])
	}
	cobra.EnableCommandSorting = false // the verbs are shown in the order of a lease's life
	return newProgram().execute(os.Args[1:])
}

// A program is the command line with what it starts.
type program struct {
	*cli.App
	server.Outside
}

func newProgram() *program {
	p := &program{cli.New(), server.RealOutside()}
	p.Version = buildVersion()
	return p
}

func (p *program) execute(args []string) int { return p.App.Run(args, p.root) }

func (p *program) root() *cobra.Command {
	a := p.App
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Time-bound, exclusive, fenced ownership of named resources",
		Long: `Leasehold grants leases: the right of one holder to a named resource until a
moment. Each grant carries a token that is larger than every one before it, so
that what the lease protects can turn away a holder that is late.

` + cli.ExitHelp(),
		Example: `  leasehold serve                                   # a server on 127.0.0.1:4653
  leasehold run prod/deploy -- ./deploy.sh          # waits, runs it, gives it back
  leasehold list                                    # who holds what, who waits`,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.Group,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "only data and errors: no confirmations, hints or warnings")
	root.AddGroup(
		&cobra.Group{ID: "hold", Title: "Hold something:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "define", Title: "Say what holds for resources:"},
		&cobra.Group{ID: "keep", Title: "Keep values:"},
		&cobra.Group{ID: "server", Title: "Run servers:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	group(root, "hold", run.Run(a), run.Elect(a), lease.Acquire(a), lease.Renew(a), lease.Release(a), lease.Change(a), lease.Break(a), lease.Ask(a), lease.Move(a), lease.Acknowledge(a))
	group(root, "look", resource.List(a), resource.Describe(a), resource.Queue(a), resource.Top(a), resource.Watch(a), resource.History(a), journal.Audit(a), journal.Holds(a), server.Alarms(a), lease.Advise(a))
	group(root, "define", resource.Define(a), resource.Undefine(a), resource.Definitions(a))
	group(root, "keep", record.Get(a), record.Put(a), record.Delete(a), record.List(a), record.Versions(a), record.Rollback(a), state.Command(a), terraform.Command(a))
	group(root, "server", server.Serve(a, p.Outside), cluster.Command(a), cert.Command(a), server.Config(a), server.Check(a, p.Outside), server.Backup(a, p.Outside), server.Restore(a), server.Bench(a), azure.Command(a))
	group(root, "other", server.Doctor(a), server.Version(a), a.Completion())
	root.AddCommand(cli.ExitCodesTopic(), cli.ConfigurationTopic(), cli.OutputTopic())
	root.SetHelpCommand(a.Help())
	root.SetHelpCommandGroupID("other")
	root.SetUsageTemplate(cli.UsageTemplate(root.UsageTemplate()))
	return root
}

func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
}

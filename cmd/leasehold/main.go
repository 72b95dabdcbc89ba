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
)

func main() { os.Exit(run()) }

// run is main for the tests as well, so that they start what users start.
func run() int {
	if len(os.Args) == 2 && os.Args[1] == guardName {
		child.Guard(os.Stdin)
		return 0
	}
	if len(os.Args) > 2 && os.Args[1] == gateName {
		return child.Begin(os.Args[2:])
	}
	cobra.EnableCommandSorting = false // the verbs are shown in the order of a lease's life
	return newProgram().run(os.Args[1:])
}

// A program is the command line with what it starts.
type program struct {
	*app
	outside
}

func newProgram() *program {
	p := &program{newApp(), realOutside()}
	p.version = buildVersion()
	return p
}

func (p *program) run(args []string) int { return p.app.run(args, p.root) }

func (p *program) root() *cobra.Command {
	a := p.app
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Time-bound, exclusive, fenced ownership of named resources",
		Long: `Leasehold grants leases: the right of one holder to a named resource until a
moment. Each grant carries a token that is larger than every one before it, so
that what the lease protects can turn away a holder that is late.

` + exitHelp(),
		Example: `  leasehold serve                                   # a server on 127.0.0.1:4653
  leasehold run prod/deploy -- ./deploy.sh          # waits, runs it, gives it back
  leasehold list                                    # who holds what, who waits`,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.onlySubcommands,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "only data and errors: no confirmations, hints or warnings")
	root.AddGroup(
		&cobra.Group{ID: "hold", Title: "Hold something:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "define", Title: "Say what holds for resources:"},
		&cobra.Group{ID: "keep", Title: "Keep values:"},
		&cobra.Group{ID: "server", Title: "Run servers:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	group(root, "hold", a.runCommand(), a.electCommand(), a.acquireCommand(), a.renewCommand(), a.releaseCommand(), a.changeCommand(), a.breakCommand(), a.askCommand(), a.moveCommand(), a.acknowledgeCommand())
	group(root, "look", a.listCommand(), a.describeCommand(), a.queueCommand(), a.topCommand(), a.watchCommand(), a.historyCommand(), a.auditCommand(), a.holdsCommand(), a.alarmsCommand(), a.adviseCommand())
	group(root, "define", a.defineCommand(), a.undefineCommand(), a.definitionsCommand())
	group(root, "keep", a.getCommand(), a.putCommand(), a.deleteCommand(), a.recordsCommand(), a.versionsCommand(), a.rollbackCommand(), a.stateCommand(), a.terraformCommand())
	group(root, "server", a.serveCommand(p.outside), a.clusterCommand(), a.certCommand(), a.configCommand(), a.checkCommand(p.outside), a.backupCommand(p.outside), a.restoreCommand(), a.benchCommand(), a.azureCommand())
	group(root, "other", a.doctorCommand(), a.versionCommand(), a.completionCommand())
	root.AddCommand(exitCodesTopic(), configurationTopic(), outputTopic())
	root.SetHelpCommand(a.helpCommand())
	root.SetHelpCommandGroupID("other")
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}

func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
}

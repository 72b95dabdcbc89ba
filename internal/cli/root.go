package cli

import "github.com/spf13/cobra"

// A Chapter is the commands for one thing that people want to do.
type Chapter struct {
	Title    string
	Commands []*cobra.Command
}

// Root returns the command that all others are below.
func (a *App) Root(contents []Chapter) *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Time-bound, exclusive, fenced ownership of named resources",
		Long:  "Leasehold grants leases: time-bound, exclusive ownership of named resources.",
		Example: `  leasehold serve                                 # start a server
  leasehold run prod/deploy -- ./deploy.sh        # run a command under a lease
  leasehold acquire prod/deploy --ttl 10m         # take a lease; shows its id
  leasehold release ID                            # give it back
  leasehold list                                  # who holds what, who waits
  leasehold describe prod/deploy                  # one resource in detail
  leasehold break prod/deploy --reason "stuck"    # end somebody else's lease
  leasehold doctor                                # check this machine and server
  leasehold demo                                  # see the console alive
  leasehold connect                               # what to paste for Go, etcd, …`,
		Version:           VersionLine(a.Version),
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: checkValues,
		RunE:              a.Group,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(a.flagError)
	root.SetVersionTemplate("leasehold {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this program")
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false,
		"only data and errors: no confirmations, hints or warnings")
	for _, chapter := range contents {
		root.AddGroup(&cobra.Group{ID: chapter.Title, Title: chapter.Title + ":"})
		for _, command := range chapter.Commands {
			command.GroupID, command.Aliases = chapter.Title, aliases[command.Name()]
		}
		root.AddCommand(chapter.Commands...)
	}
	root.AddCommand(exitCodesTopic(), a.configurationTopic(), outputTopic())
	root.SetHelpCommand(a.help())
	root.SetHelpCommandGroupID(contents[len(contents)-1].Title)
	root.SetUsageFunc(writeUsage)
	fitHelp(root)
	return root
}

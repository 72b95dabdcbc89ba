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
		Long: `Leasehold grants leases: the right of one holder to a named resource until a
moment. Each grant carries a token that is larger than every one before it, so
that what the lease protects can turn away a holder that is late.`,
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
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false,
		"only data and errors: no confirmations, hints or warnings")
	for _, chapter := range contents {
		root.AddGroup(&cobra.Group{ID: chapter.Title, Title: chapter.Title + ":"})
		for _, command := range chapter.Commands {
			command.GroupID = chapter.Title
		}
		root.AddCommand(chapter.Commands...)
	}
	root.AddCommand(exitCodesTopic(), a.configurationTopic(), outputTopic())
	root.SetHelpCommand(a.help())
	root.SetHelpCommandGroupID(contents[len(contents)-1].Title)
	root.SetUsageFunc(writeUsage)
	return root
}

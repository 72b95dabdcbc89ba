package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/config"
)

// help returns the help command. Cobra's own succeeds for an unknown word, and so hides a typing
// error from a script.
func (a *App) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command or a topic",
		Long: `Help shows what a command does, its flags and examples. "leasehold help all" lists
every command by what it is for.

Besides the commands there are topics: exit-codes, configuration and output.`,
		Example: `  leasehold help all
  leasehold help acquire
  leasehold help exit-codes`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion,
			_ cobra.ShellCompDirective) {
			if len(args) == 0 {
				names = append(names, cobra.CompletionWithDesc("all", "Every command, by what it is for"))
				for _, sub := range cmd.Root().Commands() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"all"}) {
				return a.helpAll(cmd.Root())
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// helpAll lists every command, by chapter.
func (a *App) helpAll(root *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n  leasehold COMMAND\n")
	usageOfCommands(&b, root)
	usageOfFlags(&b, root)
	b.WriteString("\n\"leasehold help COMMAND\" explains a command.\n")
	_, err := io.WriteString(a.Stdout, b.String())
	return Written(err)
}

// topic returns a page of help that is no command.
func topic(name, short, long string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Long: long}
	// A topic is read, not run: cobra would add how to run it.
	c.SetHelpTemplate("{{.Long}}\n")
	return c
}

// exitCodesTopic explains the exit codes.
func exitCodesTopic() *cobra.Command {
	return topic("exit-codes", "What the exit codes mean", exitHelp()+`

Every code has one meaning, whatever the command:

  leasehold acquire prod/deploy -o name --wait 10s
  case $? in
  0)  ./deploy.sh ;;
  75) echo "somebody else deploys" ;;
  69) echo "no server: try again later" ;;
  esac

A command that was given several ids goes through all of them and ends with the
code of the first that failed. Code 74 is also that of a command which could not
write its output: what it was asked to do may be done all the same.

Run and elect end with the code of their command. Where that may be 75 or 76 too, choose
another one for "held" with -E; what was lost is also said on standard error.`)
}

// configurationTopic lists all settings.
func (a *App) configurationTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString(`Every setting has one name. It is a flag, and a variable in capitals behind
LEASEHOLD_; those of the server are also keys of the YAML file that --config names.
The flag is strongest, then the variable, then the file, then the default; for commands that
talk to a server, the context (leasehold help context) is in the place of the file:

  leasehold serve --log-level debug
  LEASEHOLD_LOG_LEVEL=debug leasehold serve
  echo 'log-level: debug' > leasehold.yaml; leasehold serve --config leasehold.yaml

A variable that is empty counts as not set. An unknown variable or key is
an error, and so is a wrong value, even one that a stronger source overrules.
"leasehold config show --origin" shows what is used and where it comes from.
`)
	settingsHelp(&b, "Settings of the server (serve, config show):", config.ServerKeys(a.Doors...))
	settingsHelp(&b, "Settings of commands that talk to a server:", config.ClientKeys())
	b.WriteString(`
Variables that run and elect set for their command, which are not settings:

  LEASEHOLD_RESOURCE, _ID, _TOKEN, _UNITS, _EXPIRES, _HELD

For other commands LEASEHOLD_TOKEN, if it is not a number, is the token that proves who you
are. Run and elect pass it on as LEASEHOLD_ACCESS_TOKEN, which means the same.
`)
	b.WriteString("\nNO_COLOR, if it is not empty, turns colours off.")
	return topic("configuration", "Every setting, its variable and its default", b.String())
}

func settingsHelp(b *strings.Builder, title string, keys []config.Key) {
	fmt.Fprintf(b, "\n%s\n", title)
	for _, k := range keys {
		fmt.Fprintf(b, "\n  --%s, %s", k.Name, k.Env())
		if k.Default != "" {
			fmt.Fprintf(b, " (default %s)", k.Default)
		}
		fmt.Fprintf(b, "\n      %s\n", strings.Join(breakWords(strings.Fields(k.Help), helpWidth-6), "\n      "))
		if len(k.Values) > 0 {
			fmt.Fprintf(b, "      one of: %s\n", strings.Join(k.Values, ", "))
		}
	}
}

// outputTopic explains the formats of -o.
func outputTopic() *cobra.Command {
	return topic("output", "What -o table, wide, json and name print",
		`Data goes to standard output; confirmations, hints, warnings and errors go to
standard error, and --quiet leaves all of them out but the errors.

  -o table   columns for people; times are relative
  -o wide    more columns, and times as dates
  -o json    what the API says: one object for one thing, a list (which may be
             []) for several, one object a line for watch and one list a line
             for list --watch. Standard error is then empty, or has one object
             for each error (also for a wrong command or flag): "code", "detail"
             (the message), "exit" (the exit code), and "hint" (what to try
             next) where there is one
  -o ndjson  one object a line, as they come: for audit and holds, of which
             there may be more than fits in one list
  -o name    nothing but the name: of the lease (its id) for acquire, renew,
             release and change, of the waiter (its id) for queue, of the
             resource for list, describe and break, of the event (its position,
             which watch --since takes) for watch and history, of the record
             (its path) for get and records; for put the revision, for delete
             the number of records; of the server for cluster, of the file for
             cert

Tables may change from one release to the next; json and name will not. On a
terminal long cells are cut to its width and end with …; with -o wide, and in a pipe,
nothing is cut. Characters that could move the cursor are shown as escapes.`)
}

package server

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

// Config returns the command config.
func Config(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings, and where they come from",
		Long: `Config shows the settings that are in effect, and which flag, variable or line of a file
each comes from. "leasehold help configuration" lists all settings.`,
		Example: `  leasehold config show
  leasehold config show --origin --config /etc/leasehold.yaml
  leasehold config show -o yaml > leasehold.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(configShowCommand(a))
	return cmd
}

func configShowCommand(a *cli.App) *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting that would be used",
		Long: `Show prints the settings that serve, and commands that talk to a server, would use
if they were given the same flags. --origin adds where each comes from: a flag, a
variable, a line of the file, or the default.

Wrong settings are refused as serve would refuse them, so this also checks a file before
it is used. With -o yaml the settings of the server are printed as a file that sets them
again.`,
		Example: `  leasehold config show --origin
  leasehold config show --config new.yaml --quiet > /dev/null && echo fine
  leasehold config show -o json | jq -r '.[] | select(.key == "data").value'`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		src, err := a.ClientSources(cmd)
		if err != nil {
			return cli.Usage("%v", err)
		}
		_, settings, serverErr := config.ForServer(src)
		_, more, clientErr := config.ForClient(src)
		if err := firstProblem(serverErr, clientErr); err != nil {
			return cli.Hint(cli.Usage("%v", err), "all settings: leasehold help configuration")
		}
		return printSettings(a, append(settings, more...), origin)
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "also show where each value comes from")
	serveFlags(a, cmd)
	for _, key := range config.ClientKeys() {
		a.SettingFlag(cmd, key.Name, "")
	}
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatYAML)
	return cmd
}

func firstProblem(server, client error) error {
	// Both complain of the same variables; one of them is enough.
	if server != nil {
		return server
	}
	return client
}

func printSettings(a *cli.App, settings []config.Setting, origin bool) error {
	switch a.Output {
	case cli.FormatYAML:
		text, err := config.YAML(settings, origin)
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(text)
		return cli.Written(err)
	case cli.FormatJSON:
		return a.PrintJSON(cli.Shown(settings))
	}
	columns := []cli.Column{{Name: "KEY"}, {Name: "VALUE"}}
	if origin {
		columns = append(columns, cli.Column{Name: "ORIGIN"})
	}
	var rows [][]string
	for _, s := range cli.Shown(settings) {
		rows = append(rows, []string{s.Key, s.Value, s.Origin}[:len(columns)])
	}
	return a.PrintTable(columns, rows)
}

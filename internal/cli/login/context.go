package login

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
	"github.com/leasehold/leasehold/store"
)

// Context returns the command context, with all below it.
func Context(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Name servers, and choose which one commands use",
		Long: `A context names servers and what belongs to them: the authority of their certificates, the
namespace, and who you are there (leasehold login). Commands use the one of --context or
LEASEHOLD_CONTEXT, or else the current one.

Flags are stronger than variables, variables than the context, the context than defaults.
What proves who you are to the servers of a context is never sent to others.`,
		Example: `  leasehold context set prod --server https://leases.example --ca ca.pem -N web
  leasehold context use prod
  leasehold context list`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(setContext(a), useContext(a), listContexts(a), showContext(a), deleteContext(a))
	return cmd
}

// onContexts completes a command that works on the file of contexts. What it changed is kept.
func onContexts(a *cli.App, cmd *cobra.Command,
	run func(cmd *cobra.Command, c *profile.Contexts, args []string) (bool, error),
) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := profile.UserDir(a.Getenv)
		if err != nil {
			return cli.Usage("%v", err)
		}
		contexts, err := dir.Contexts()
		if err != nil {
			return cli.Usage("%v", err)
		}
		changed, err := run(cmd, &contexts, args)
		if err != nil || !changed {
			return err
		}
		if err := dir.SaveContexts(contexts); err != nil {
			return cli.Usage("the contexts cannot be kept: %v", err)
		}
		return nil
	}
	return cmd
}

func unknown(c *profile.Contexts, name string) error {
	return cli.Failure(leasehold.NotFound, "%v", c.Unknown(name))
}

func setContext(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a context, or change what it says",
		Long: `Set keeps the flags of a connection under a name. Those that are not given stay as they
are, and an empty one is removed. The first context becomes the current one.`,
		Example: `  leasehold context set prod --server https://leases.example --ca ca.pem
  leasehold context set prod -N web
  leasehold context set ci --server https://leases.example \
      --token-file /run/secrets/leasehold`,
		Args: cli.Takes(1, 1),
	}
	onContexts(a, cmd, func(cmd *cobra.Command, c *profile.Contexts, args []string) (bool, error) {
		if err := profile.CheckName(args[0]); err != nil {
			return false, cli.Usage("%v", err)
		}
		settings, err := changed(cmd, c.All[args[0]])
		if err != nil {
			return false, err
		}
		if _, _, err := config.ForClient(config.Sources{Context: settings, ContextName: args[0]}); err != nil {
			return false, cli.Usage("%v", err)
		}
		c.All[args[0]] = settings
		c.Current = cmp.Or(c.Current, args[0])
		a.Say("context %s is kept%s", args[0], map[bool]string{true: ", and is the current one"}[c.Current == args[0]])
		return true, printContext(a, c, args[0])
	})
	for _, name := range profile.Settings {
		if name != profile.Insecure {
			a.SettingFlag(cmd, name, map[string]string{"namespace": "N"}[name])
		}
	}
	cmd.Flags().Bool(profile.Insecure, false, "send your token also to another machine without TLS")
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// printContext prints a context for a program. A person was told already.
func printContext(a *cli.App, c *profile.Contexts, name string) error {
	if a.Output != cli.FormatJSON {
		return nil
	}
	return a.PrintJSON(shown(a, c, name))
}

// changed returns what a context says with the flags that were given.
func changed(cmd *cobra.Command, old profile.Context) (profile.Context, error) {
	settings := maps.Clone(old)
	if settings == nil {
		settings = profile.Context{}
	}
	given := false
	for _, name := range profile.Settings {
		f := cmd.Flags().Lookup(name)
		if !f.Changed {
			continue
		}
		given = true
		value := f.Value.String()
		if slices.Contains([]string{"ca", "cert", "key", "token-file"}, name) && value != "" {
			whole, err := filepath.Abs(value)
			if err != nil {
				return nil, cli.Usage("%v", err)
			}
			value = whole // commands are run in any directory
		}
		settings[name] = value
		if value == "" || value == "false" {
			delete(settings, name)
		}
	}
	if !given {
		return nil, cli.SeeHelp(cmd, cli.Usage("give what the context should have, such as "+
			"--server https://leases.example"))
	}
	return settings, nil
}

func useContext(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one",
		Long: `Use makes a context the one that commands use unless --context or LEASEHOLD_CONTEXT names
another. With "-" none is current any more.`,
		Example: `  leasehold context use prod
  leasehold context use staging
  leasehold context use -`,
		Args: cli.Takes(1, 1),
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return onContexts(a, cmd, func(_ *cobra.Command, c *profile.Contexts, args []string) (bool, error) {
		if args[0] == "-" {
			c.Current = ""
			a.Say("no context is the current one")
			return true, nil
		}
		settings, ok := c.All[args[0]]
		if !ok {
			return false, unknown(c, args[0])
		}
		c.Current = args[0]
		a.Say("commands use context %s: %s", args[0], store.Redact(settings["server"]))
		return true, printContext(a, c, args[0])
	})
}

// A contextShown is what is printed of a context as JSON.
type contextShown struct {
	Name     string          `json:"name"`
	Current  bool            `json:"current"`
	LoggedIn bool            `json:"logged_in"`
	Settings profile.Context `json:"settings"`
}

func shown(a *cli.App, c *profile.Contexts, name string) contextShown {
	s := contextShown{Name: name, Current: name == c.Current, Settings: maps.Clone(c.All[name])}
	if server := s.Settings["server"]; store.Names(server) {
		s.Settings["server"] = store.Redact(server)
	}
	if dir, err := profile.UserDir(a.Getenv); err == nil {
		_, s.LoggedIn, _ = dir.Credential(profile.Key(name, ""), nil)
	}
	return s
}

func listContexts(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the contexts",
		Long: `List shows the contexts, with their servers and namespaces, and whether you are logged in. The
current one, which commands use, has an asterisk.`,
		Example: `  leasehold context list
  leasehold context list -o wide
  leasehold context list -o json | jq -r '.[] | select(.current).name'`,
		Args: cli.Takes(0, 0),
	}
	onContexts(a, cmd, func(_ *cobra.Command, c *profile.Contexts, _ []string) (bool, error) {
		items, rows := []contextShown{}, [][]string{}
		for _, name := range c.Names() {
			s := shown(a, c, name)
			items = append(items, s)
			rows = append(rows, []string{map[bool]string{true: "*"}[s.Current], name, s.Settings["server"],
				s.Settings["namespace"], map[bool]string{true: "yes"}[s.LoggedIn]})
		}
		if a.Output == cli.FormatJSON {
			return false, a.PrintJSON(items)
		}
		return false, a.PrintTable([]cli.Column{{Name: "USED"}, {Name: "NAME"}, {Name: "SERVER", Flexible: true},
			{Name: "NAMESPACE", Flexible: true}, {Name: "LOGGED IN"}}, rows)
	})
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON)
	return cmd
}

func showContext(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show what a context says",
		Long: `Show prints the settings of a context, or of the current one. It shows no secrets: what login
kept is in another file, which only you can read.`,
		Example: `  leasehold context show
  leasehold context show prod
  leasehold context show prod -o json | jq -r .settings.server`,
		Args: cli.Takes(0, 1),
	}
	onContexts(a, cmd, func(_ *cobra.Command, c *profile.Contexts, args []string) (bool, error) {
		name := c.Current
		if len(args) > 0 {
			name = args[0]
		}
		if name == "" {
			return false, cli.Failure(leasehold.NotFound, "no context is the current one: name one, or run "+
				"leasehold context use NAME")
		}
		if _, ok := c.All[name]; !ok {
			return false, unknown(c, name)
		}
		s := shown(a, c, name)
		if a.Output == cli.FormatJSON {
			return false, a.PrintJSON(s)
		}
		rows := [][]string{}
		for _, key := range slices.Sorted(maps.Keys(s.Settings)) {
			rows = append(rows, []string{key, s.Settings[key]})
		}
		return false, a.PrintTable([]cli.Column{{Name: "KEY"}, {Name: "VALUE", Flexible: true}}, rows)
	})
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func deleteContext(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a context, and the login that belongs to it",
		Long: `Delete forgets a context and what login kept for it, on this machine. The servers are not
asked, and tokens stay valid until they end or are revoked.`,
		Example: `  leasehold context delete staging
  leasehold context delete staging --quiet
  leasehold context list`,
		Args: cli.Takes(1, 1),
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return onContexts(a, cmd, func(_ *cobra.Command, c *profile.Contexts, args []string) (bool, error) {
		if _, ok := c.All[args[0]]; !ok {
			return false, unknown(c, args[0])
		}
		delete(c.All, args[0])
		if c.Current == args[0] {
			c.Current = ""
		}
		dir, err := profile.UserDir(a.Getenv)
		if err == nil {
			_, err = dir.ForgetCredential(profile.Key(args[0], ""))
		}
		if err != nil {
			return false, cli.Usage("%v", err)
		}
		a.Say("deleted context %s", args[0])
		if a.Output == cli.FormatJSON {
			return true, a.PrintJSON(v1.Nothing{})
		}
		return true, nil
	})
}

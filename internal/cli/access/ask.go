package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

// exitNo is the exit code of a no.
const exitNo = 1

// everyNamespace stands for all namespaces, and for the cluster itself.
const everyNamespace = "*"

func canI(a *cli.App) *cobra.Command {
	var q v1.CanIQuery
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "can-i VERB [PATH]",
		Short: "Ask whether you, or somebody, may do something, and why",
		Long: `Can-i says whether something is allowed, and which binding says so. The exit code is 0 for
yes and 1 for no. Without PATH it asks about everything in the namespace, and with
--all-namespaces about the whole cluster. With --as an admin asks about somebody else.`,
		Example: `  leasehold access can-i break prod/db
  leasehold access can-i acquire a/job --as ci --group team-a
  leasehold access can-i admin --all-namespaces && echo "you are an admin"`,
		Args:              cli.Takes(1, 2),
		ValidArgsFunction: completeVerb,
	}
	cmd.Flags().StringVar(&q.As, "as", "", "principal to ask about (default: you)")
	cmd.Flags().StringArrayVar(&q.Groups, "group", nil,
		"group of that principal (repeatable; default: those of its tokens)")
	cmd.Flags().BoolVar(&everywhere, "all-namespaces", false, "in all namespaces, and to the cluster itself")
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		q.Verb, q.Path = args[0], second(args)
		asked, err := inNamespace(a, c, everywhere)
		if err != nil {
			return err
		}
		answer, err := asked.CanI(ctx, q)
		if err != nil {
			return err
		}
		return printCanI(a, answer)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// inNamespace returns the connection to ask about all namespaces, or the one of the command.
func inNamespace(_ *cli.App, c *cli.Conn, everywhere bool) (*cli.Conn, error) {
	if !everywhere {
		return c, nil
	}
	client := c.Client
	client.Namespace = everyNamespace
	return cli.NewConn(client, c.Cmd)
}

func second(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

func completeVerb(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return v1.Verbs, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func printCanI(a *cli.App, answer v1.CanI) error {
	failed := error(nil)
	if !answer.Allowed {
		failed = &cli.CodedError{Code: exitNo}
	}
	if a.Output == cli.FormatJSON {
		return first(a.PrintJSON(answer), failed)
	}
	subject := answer.Principal
	if len(answer.Groups) > 0 {
		subject += " (" + strings.Join(answer.Groups, ", ") + ")"
	}
	lines := []string{}
	switch {
	case !answer.Enabled:
		lines = append(lines, "yes: access is off, and everybody may do everything")
	case subject == "":
		lines = append(lines, "no: nobody was proven to ask; log in with leasehold login")
	case !answer.Allowed:
		lines = append(lines, fmt.Sprintf("no: no binding lets %s %s %s", subject, answer.Verb,
			target(answer.Namespace, answer.Path)))
	case answer.Own:
		lines = append(lines, "yes, but only what is held by "+subject)
	default:
		lines = append(lines, "yes")
	}
	for _, r := range answer.Because {
		lines = append(lines, "  "+because(r))
	}
	for _, line := range lines {
		if err := a.PrintLine(line); err != nil {
			return err
		}
	}
	return failed
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// target returns what a question is about.
func target(namespace, path string) string {
	switch {
	case path == "" && namespace == everyNamespace:
		return "the whole cluster"
	case path == "":
		return "everything in namespace " + namespace
	case namespace == "default":
		return path
	}
	return path + " in namespace " + namespace
}

// because returns what a binding says.
func because(r v1.AccessReason) string {
	text := fmt.Sprintf("binding %s: %s is %s of %s", r.Binding, who(r.Principal, r.Group), r.Role,
		where(r.Namespace, r.Prefix))
	if r.Holders != "" {
		text += ", holding as " + r.Holders
	}
	if r.Own {
		text += " (own only)"
	}
	return text
}

func whoCan(a *cli.App) *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "who-can VERB [PATH]",
		Short: "Ask who may do something, and why",
		Long: `Who-can lists the bindings that let anybody do something. Without PATH it asks about
everything in the namespace, and with --all-namespaces about the whole cluster. The exit code is
1 if nobody may.`,
		Example: `  leasehold access who-can break prod/
  leasehold access who-can admin --all-namespaces
  leasehold access who-can break prod/db -o json | jq -r '.because[].binding'`,
		Args:              cli.Takes(1, 2),
		ValidArgsFunction: completeVerb,
	}
	cmd.Flags().BoolVar(&everywhere, "all-namespaces", false, "in all namespaces, and to the cluster itself")
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		asked, err := inNamespace(a, c, everywhere)
		if err != nil {
			return err
		}
		answer, err := asked.WhoCan(ctx, args[0], second(args))
		if err != nil {
			return err
		}
		return printWhoCan(a, answer)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON)
	return cmd
}

func printWhoCan(a *cli.App, answer v1.WhoCan) error {
	failed := error(nil)
	if answer.Enabled && len(answer.Because) == 0 {
		failed = &cli.CodedError{Code: exitNo}
	}
	switch {
	case a.Output == cli.FormatJSON:
		return first(a.PrintJSON(answer), failed)
	case !answer.Enabled:
		return a.PrintLine("everybody: access is off")
	case failed != nil:
		return first(a.PrintLine("nobody"), failed)
	}
	columns := []cli.Column{{Name: "WHO", Flexible: true}, {Name: "ROLE"}, {Name: "WHOSE"},
		{Name: "WHERE", Flexible: true}, {Name: "BINDING", Flexible: true}}
	var rows [][]string
	for _, r := range answer.Because {
		whose := "any"
		if r.Own {
			whose = "own"
		}
		rows = append(rows, []string{who(r.Principal, r.Group), r.Role, whose, where(r.Namespace, r.Prefix), r.Binding})
	}
	return a.PrintTable(columns, rows)
}

func whoami(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show who the server takes you for",
		Long: `Whoami shows the principal and the groups that your credentials prove, when they end, and
which roles they have where. A server without access knows nobody.`,
		Example: `  leasehold access whoami
  leasehold access whoami -o json | jq -r .principal
  leasehold access whoami --token-file ci.token`,
		Args: cli.Takes(0, 0),
	}
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, _ []string) error {
		me, err := c.Whoami(ctx)
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(me)
		}
		return printMe(a, me)
	})
}

func printMe(a *cli.App, me v1.Whoami) error {
	lines := []string{}
	switch {
	case !me.Enabled:
		lines = append(lines, "nobody: access is off, and everybody may do everything")
	case me.Principal == "":
		lines = append(lines, "nobody: log in with leasehold login")
	default:
		lines = append(lines, "principal  "+me.Principal)
	}
	if len(me.Groups) > 0 {
		lines = append(lines, "groups     "+strings.Join(me.Groups, ", "))
	}
	if me.Token != "" {
		lines = append(lines, "token      "+me.Token+", ends "+ends(a, me.Expires))
	}
	for _, b := range me.Bindings {
		may := "may        " + b.Role + " of " + where(b.Namespace, b.Prefix)
		if b.Holders != "" {
			may += ", holding as " + b.Holders
		}
		lines = append(lines, may)
	}
	for _, line := range lines {
		if err := a.PrintLine(line); err != nil {
			return err
		}
	}
	return nil
}

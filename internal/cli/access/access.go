package access

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

// Command returns the command access, with all below it, and those of other packages.
func Command(a *cli.App, others ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Say who may do what, and ask why",
		Long: `Access says who may do what. A role is a set of verbs; a binding gives a role to a
principal or to a group, for a namespace and a prefix of paths. Nothing is allowed that no
binding allows. Four roles are always there: viewer, member, operator and admin.

A principal is proven by a token (access token), by a JWT of an issuer (access issuer) or by
a client certificate (access certificate).`,
		Example: `  leasehold access token create ann --group team-a
  leasehold access bind member --group team-a --prefix a/
  leasehold access can-i break a/db --as ann
  leasehold access apply -f access.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(token(a), bind(a), unbind(a), bindings(a), role(a), quota(a), issuer(a), certificate(a), apply(a),
		export(a), canI(a), whoCan(a), whoami(a))
	cmd.AddCommand(others...)
	return cmd
}

// group returns a command that has others below it.
func group(a *cli.App, use, short, long, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs,
		RunE: a.Group}
	cmd.AddCommand(subs...)
	return cmd
}

// talks completes a command that asks a server about the whole cluster.
func talks(
	a *cli.App, cmd *cobra.Command, body func(ctx context.Context, c *cli.Conn, args []string) error,
) *cobra.Command {
	cmd.RunE = a.Talk(body)
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON)
	return cmd
}

// intends completes a command that changes something. reason is where its flag is kept.
func intends(a *cli.App, cmd *cobra.Command) func(c *cli.Conn) v1.Intent {
	reason := cmd.Flags().String("reason", "", "why, for the audit")
	a.SettingFlag(cmd, "holder", "")
	return func(c *cli.Conn) v1.Intent { return v1.Intent{By: c.Operator(), Reason: *reason} }
}

// all returns the items of all pages; never nil, which JSON would show as null.
func all[T any](page func(v1.AccessQuery) (v1.List[T], error)) ([]T, error) {
	items := []T{}
	for q := (v1.AccessQuery{Limit: v1.MaxLimit}); ; {
		list, err := page(q)
		if err != nil {
			return nil, err
		}
		items = append(items, list.Items...)
		if q.After = list.Next; q.After == "" {
			return items, nil
		}
	}
}

// lister returns a command that lists all items of a kind.
func lister[T any](a *cli.App, cmd *cobra.Command,
	page func(*cli.Conn, context.Context, v1.AccessQuery) (v1.List[T], error), columns []cli.Column,
	row func(T) []string,
) *cobra.Command {
	cmd.Args = cli.Takes(0, 0)
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, _ []string) error {
		items, err := all(func(q v1.AccessQuery) (v1.List[T], error) { return page(c, ctx, q) })
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(items)
		}
		rows := [][]string{}
		for _, item := range items {
			rows = append(rows, row(item))
		}
		return a.PrintTable(columns, rows)
	})
}

// deleter returns a command that removes an item by its name.
func deleter(a *cli.App, kind string, cmd *cobra.Command,
	remove func(c *cli.Conn, ctx context.Context, name string, i v1.Intent) error,
) *cobra.Command {
	cmd.Args = cli.Takes(1, 1)
	intent := intends(a, cmd)
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		err := remove(c, ctx, args[0], intent(c))
		if errors.Is(err, leasehold.ErrNotFound) {
			return cli.Hint(err, "see what there is: %s", c.Again(listing(kind)...))
		}
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(v1.Nothing{})
		}
		a.Say("removed %s %s", kind, args[0])
		return nil
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// listing returns the command that shows what there is of a kind.
func listing(kind string) []string {
	if kind == "binding" {
		return []string{"access", "bindings"}
	}
	return []string{"access", kind, "list"}
}

// who returns whom a binding is to, for people.
func who(principal, group string) string {
	if group != "" {
		return "group " + group
	}
	return principal
}

// where returns what a binding is for, for people.
func where(namespace, prefix string) string {
	switch {
	case namespace == "*" && prefix == "":
		return "everything"
	case namespace == "*":
		return prefix + " in all namespaces"
	case prefix == "":
		return "all of " + namespace
	case namespace == "default":
		return prefix
	}
	return prefix + " in " + namespace
}

func list(words []string) string { return strings.Join(words, ",") }

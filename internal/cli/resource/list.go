package resource

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// List returns the command list.
func List(a *cli.App) *cobra.Command {
	var query v1.ResourceQuery
	var watch bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Show who holds what, and how many wait",
		Long: `List shows the resources whose name begins with PREFIX, or all of them: who holds
each, and how many wait for it. REMAINING is when the lease ends unless its holder
renews it, which living holders do long before. A name in parentheses is that of
the last holder, whose lease expired or was broken.

Resources that nobody holds or waits for, and whose last lease ended well, are
left out unless you ask for --all.

--holder, --label, --session, --door and --state pick leases; what is given must all
match. In each of them but --state, * stands for any text. Of a resource that several
share, the matching holders are shown.

With --watch the list is shown again whenever somebody gets, loses or begins to wait
for something, until you stop it with ctrl-C. On a terminal it stays in its place and
counts down; elsewhere each list follows the one before, and with -o json each is a
list on a line of its own. If the server restarts, the command waits for it.`,
		Example: `  leasehold list
  leasehold list prod/ -o wide --watch
  leasehold list --holder 'ci@*' --label team=ml --state leased
  leasehold list -o json | jq -r '.[] | select(.waiting > 0) | .resource'`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if len(args) == 1 {
			query.Prefix = args[0]
		}
		if watch {
			return watchList(ctx, a, c, query)
		}
		return list(ctx, a, c, query)
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever it changes")
	cmd.Flags().BoolVarP(&query.All, "all", "a", false, "also those that are simply available")
	cli.FilterFlags(cmd, &query.Filter)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func list(ctx context.Context, a *cli.App, c *cli.Conn, query v1.ResourceQuery) error {
	resources, err := c.Everything(ctx, query)
	if err != nil {
		return err
	}
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(resources)
	case cli.FormatName:
		return printNames(a, resources)
	}
	if len(resources) == 0 {
		sayNothingThere(a, c, query)
		return nil
	}
	return printResources(a, resources)
}

func sayNothingThere(a *cli.App, c *cli.Conn, q v1.ResourceQuery) {
	where := "in namespace " + c.Client.Namespace
	if q.Prefix != "" {
		where = "under " + cli.Quote(q.Prefix) + " " + where
	}
	switch picked := cli.FilterText(q.Filter); {
	case picked != "":
		a.Say("nothing matches %s %s", picked, where)
		return
	case q.All:
		a.Say("nothing is known %s", where)
		return
	}
	a.Say("nothing is held %s; --all also shows what was", where)
}

func printNames(a *cli.App, resources []v1.Resource) error {
	for _, r := range resources {
		if err := a.PrintLine(r.Resource); err != nil {
			return err
		}
	}
	return nil
}

func printResources(a *cli.App, resources []v1.Resource) error {
	columns := []cli.Column{{Name: "RESOURCE"}, {Name: "STATE", Paint: cli.PaintState},
		{Name: "HOLDER", Flexible: true}, {Name: "REMAINING"}, {Name: "WAITING"}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "UNITS", Flexible: true}, cli.Column{Name: "TOKEN"},
			cli.Column{Name: "ID"}, cli.Column{Name: "SESSION"}, cli.Column{Name: "SINCE"},
			cli.Column{Name: "DOOR"}, cli.Column{Name: "NOTE", Flexible: true},
			cli.Column{Name: "REASON", Flexible: true})
	}
	var rows [][]string
	for _, r := range resources {
		rows = append(rows, resourceRows(a, r)...)
	}
	return a.PrintTable(columns, rows)
}

// resourceRows returns a row for each holder, or one for a resource without any.
func resourceRows(a *cli.App, r v1.Resource) (rows [][]string) {
	waiting := strconv.Itoa(r.Waiting)
	for _, l := range r.Holders {
		row := []string{r.Resource, l.State, l.Holder, cli.Left(l), waiting}
		if a.Output == cli.FormatWide {
			row = append(row, strings.Join(l.Units, ","), strconv.FormatUint(l.Token, 10), l.ID, l.Session,
				a.When(l.Acquired), l.Door, l.Note, l.Reason)
		}
		rows = append(rows, row)
	}
	if more := r.Holding - len(r.Holders); more > 0 {
		row := []string{r.Resource, "", fmt.Sprintf("and %d more", more), "", waiting}
		if a.Output == cli.FormatWide {
			row = append(row, "", "", "", "", "", "", "", "")
		}
		rows = append(rows, row)
	}
	if rows == nil {
		row := []string{r.Resource, r.State, cli.FormerHolder(r), "", waiting}
		if a.Output == cli.FormatWide {
			row = append(row, "", "", "", "", "", "", "", "")
		}
		rows = append(rows, row)
	}
	return rows
}

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) listCommand() *cobra.Command {
	var all, watch bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Show who holds what, and how many wait",
		Long: `List shows the resources whose name begins with PREFIX, or all of them: who holds
each, for how much longer, and how many wait for it. A name in parentheses is that
of the last holder, whose lease expired or was broken.

Resources that nobody holds or waits for, and whose last lease ended well, are
left out unless you ask for --all.

With --watch the list is shown again whenever somebody gets, loses or begins to wait
for something, until you stop it with ctrl-C. On a terminal it stays in its place and
counts down; elsewhere each list follows the one before, and with -o json each is a
list on a line of its own. If the server restarts, the command waits for it.`,
		Example: `  leasehold list
  leasehold list prod/ -o wide --watch
  leasehold list -o json | jq -r '.[] | select(.waiting > 0) | .resource'`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		prefix := ""
		if len(args) == 1 {
			prefix = args[0]
		}
		if watch {
			return a.listWatch(ctx, c, prefix, all)
		}
		return a.list(ctx, c, prefix, all)
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever it changes")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that are simply available")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) list(ctx context.Context, c *conn, prefix string, all bool) error {
	resources, err := c.everything(ctx, prefix, all)
	if err != nil {
		return err
	}
	switch a.output {
	case formatJSON:
		return a.printJSON(resources)
	case formatName:
		return a.printNames(resources)
	}
	if len(resources) == 0 {
		a.sayNothingThere(c, prefix, all)
		return nil
	}
	return a.printResources(resources)
}

func (a *app) sayNothingThere(c *conn, prefix string, all bool) {
	where := "in namespace " + c.client.Namespace
	if prefix != "" {
		where = "under " + quote(prefix) + " " + where
	}
	if all {
		a.say("nothing is known %s", where)
		return
	}
	a.say("nothing is held %s; --all also shows what was", where)
}

func (a *app) printNames(resources []v1.Resource) error {
	for _, r := range resources {
		if err := a.printLine(r.Resource); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printResources(resources []v1.Resource) error {
	columns := []column{{name: "RESOURCE"}, {name: "STATE", paint: paintState}, {name: "HOLDER", flexible: true}, {name: "REMAINING"}, {name: "WAITING"}}
	if a.output == formatWide {
		columns = append(columns, column{name: "TOKEN"}, column{name: "ID"}, column{name: "SESSION"}, column{name: "SINCE"}, column{name: "REASON", flexible: true})
	}
	var rows [][]string
	for _, r := range resources {
		rows = append(rows, a.resourceRows(r)...)
	}
	return a.printTable(columns, rows)
}

// resourceRows is a row for each holder, or one for a resource that has none.
func (a *app) resourceRows(r v1.Resource) (rows [][]string) {
	waiting := strconv.Itoa(r.Waiting)
	for _, l := range r.Holders {
		row := []string{r.Resource, l.State, l.Holder, left(l), waiting}
		if a.output == formatWide {
			row = append(row, strconv.FormatUint(l.Token, 10), l.ID, l.Session, a.when(l.Acquired), l.Reason)
		}
		rows = append(rows, row)
	}
	if more := r.Holding - len(r.Holders); more > 0 {
		row := []string{r.Resource, "", fmt.Sprintf("and %d more", more), "", waiting}
		if a.output == formatWide {
			row = append(row, "", "", "", "", "")
		}
		rows = append(rows, row)
	}
	if rows == nil {
		row := []string{r.Resource, r.State, formerHolder(r), "", waiting}
		if a.output == formatWide {
			row = append(row, "", "", "", "", "")
		}
		rows = append(rows, row)
	}
	return rows
}

package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) recordsCommand() *cobra.Command {
	var revision uint64
	cmd := &cobra.Command{
		Use:   "records [PREFIX]",
		Short: "List records",
		Long: `Records lists the records whose path begins with PREFIX, or all of them: the size of
the value, how often it was changed, and the revision that changed it last. With
-o wide there are also the beginning of the value, the revision that made it, the
largest token it was written under, and the session it ends with.

With --revision it shows them as they were then, as long as the server's history
reaches back so far.`,
		Example: `  leasehold records
  leasehold records config/ -o wide
  leasehold records workers/ -o json | jq -r '.[] | select(.session) | .path'`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completesRecords(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		query := v1.RecordQuery{Revision: revision, Limit: v1.MaxLimit, Keys: a.output == formatName}
		if len(args) == 1 {
			query.Prefix = args[0]
		}
		found := []v1.Record{}
		for r, err := range c.Records(ctx, query) {
			if err != nil {
				return err
			}
			found = append(found, r)
		}
		return a.printRecords(c, query.Prefix, found)
	})
	cmd.Flags().Uint64Var(&revision, "revision", 0, "as they were at this revision (default: as they are)")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) printRecords(c *conn, prefix string, found []v1.Record) error {
	switch {
	case a.output == formatJSON:
		return a.printJSON(found)
	case a.output == formatName:
		for _, r := range found {
			if err := a.printLine(r.Path); err != nil {
				return err
			}
		}
		return nil
	case len(found) == 0 && prefix != "":
		a.say("there are no records under %s in namespace %s", quote(prefix), c.client.Namespace)
		return nil
	case len(found) == 0:
		a.say("there are no records in namespace %s", c.client.Namespace)
		return nil
	}
	columns := []column{{name: "PATH"}, {name: "SIZE"}, {name: "VERSION"}, {name: "REVISION"}}
	if a.output == formatWide {
		columns = append(columns, column{name: "CREATED"}, column{name: "TOKEN"}, column{name: "SESSION"}, column{name: "VALUE", flexible: true})
	}
	var rows [][]string
	for _, r := range found {
		row := []string{r.Path, strconv.FormatInt(sizeOf(r), 10), strconv.FormatUint(r.Version, 10), strconv.FormatUint(r.Mod, 10)}
		if a.output == formatWide {
			token := ""
			if r.Token != 0 {
				token = strconv.FormatUint(r.Token, 10)
			}
			row = append(row, strconv.FormatUint(r.Create, 10), token, r.Session, string(r.Value[:min(len(r.Value), 60)]))
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}

func sizeOf(r v1.Record) int64 {
	if r.Large != nil {
		return r.Large.Size
	}
	return int64(len(r.Value))
}

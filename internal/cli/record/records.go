package record

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// List returns the command records.
func List(a *cli.App) *cobra.Command {
	var revision uint64
	cmd := &cobra.Command{
		Use:   "records [PREFIX]",
		Short: "List records",
		Long: `Records lists the records whose path begins with PREFIX, or all of them: the size of
the value, how often it was changed, and the revision that changed it last. With
-o wide there are also the beginning of the value, the revision that made it, the
largest token it was written under, and the session it ends with.

With --revision it shows them as they were then, as long as the server's history
reaches back that far.`,
		Example: `  leasehold records
  leasehold records config/ -o wide
  leasehold records workers/ -o json | jq -r '.[] | select(.session) | .path'`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		query := v1.RecordQuery{Revision: revision, Limit: v1.MaxLimit, Keys: a.Output == cli.FormatName}
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
		return printRecords(a, c, query.Prefix, found)
	})
	cmd.Flags().Uint64Var(&revision, "revision", 0, "as they were at this revision (default: as they are)")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printRecords(a *cli.App, c *cli.Conn, prefix string, found []v1.Record) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(found)
	case a.Output == cli.FormatName:
		for _, r := range found {
			if err := a.PrintLine(r.Path); err != nil {
				return err
			}
		}
		return nil
	case len(found) == 0 && prefix != "":
		a.Say("there are no records under %s in namespace %s", cli.Quote(prefix), c.Client.Namespace)
		return nil
	case len(found) == 0:
		a.Say("there are no records in namespace %s", c.Client.Namespace)
		return nil
	}
	columns := []cli.Column{{Name: "PATH"}, {Name: "SIZE"}, {Name: "VERSION"}, {Name: "REVISION"}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "CREATED"}, cli.Column{Name: "TOKEN"}, cli.Column{Name: "SESSION"},
			cli.Column{Name: "VALUE", Flexible: true})
	}
	var rows [][]string
	for _, r := range found {
		row := []string{r.Path, strconv.FormatInt(sizeOf(r), 10), strconv.FormatUint(r.Version, 10),
			strconv.FormatUint(r.Mod, 10)}
		if a.Output == cli.FormatWide {
			token := ""
			if r.Token != 0 {
				token = strconv.FormatUint(r.Token, 10)
			}
			row = append(row, strconv.FormatUint(r.Create, 10), token, r.Session, shortValue(r))
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

// shortValue is how a value begins, if it is text.
func shortValue(r v1.Record) string {
	value := string(r.Value)
	switch {
	case r.Large != nil:
		return "(large)"
	case !v1.IsText(value):
		return "(binary)"
	}
	if short := []rune(value); len(short) > 60 {
		return string(short[:60]) + "…"
	}
	return value
}

func sizeOf(r v1.Record) int64 {
	if r.Large != nil {
		return r.Large.Size
	}
	return int64(len(r.Value))
}

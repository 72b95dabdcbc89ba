package journal

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Audit returns the command audit.
func Audit(a *cli.App) *cobra.Command {
	var f journalFlags
	cmd := &cobra.Command{
		Use:   "audit [NAME]",
		Short: "Show what was done, by whom, and what was refused",
		Long: `Audit shows every change that was made, and every request that was refused, the
newest last: the verb, what it came to, who did it and from which address. NAME is a
resource or the path of a record; with a slash at its end, all that begin with it.

The actor is who was proven to have sent the request; where access is off, what it
calls itself, which anybody can write. Where a request says nothing of that the actor
is empty and the address is all there is. What nobody did has the actor "time": a
lease that expired, a break whose moment came.

Renewals are not in it, and polling for a resource is there once for each lease in the
way. What was refused for lack of permission, or by the Terraform or Azure door, is only on
the server that refused it. The journal is bounded: the oldest is dropped first, and
refusals have a quarter of it to themselves. To keep more, export it:

  leasehold audit -o ndjson --since 1d >> audit.ndjson`,
		Example: `  leasehold audit prod/deploy --verb break
  leasehold audit prod/ --since 7d --actor ops@example.com -o wide
  leasehold audit -o ndjson | jq -r 'select(.outcome == "denied") | .address'`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		q, err := f.query(a, cmd, args)
		if err != nil {
			return err
		}
		if a.Output == cli.FormatLines && f.limit == 0 {
			return copyLines(ctx, a, q, c.ExportAudit)
		}
		operations, err := newest(f.limit, func(after string, limit int) (v1.List[v1.Operation], error) {
			q.After, q.Limit = after, limit
			return c.AuditPage(ctx, q)
		})
		if err != nil {
			return err
		}
		return printOperations(a, operations)
	})
	cmd.Flags().StringVar(&f.holder, "holder", "", "about this holder only")
	cmd.Flags().StringVar(&f.actor, "actor", "", `done by this one only; "time" for what nobody did`)
	cmd.Flags().StringVar(&f.verb, "verb", "", "only this: acquire, release, break, expire …")
	f.add(cmd)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatLines)
	return cmd
}

func printOperations(a *cli.App, operations []v1.Operation) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(operations)
	case a.Output == cli.FormatLines:
		return printLines(a, operations)
	case len(operations) == 0:
		a.Say("the audit has no entry that matches")
		return nil
	}
	columns := []cli.Column{{Name: "WHEN"}, {Name: "VERB"}, {Name: "RESOURCE", Flexible: true}, {Name: "OUTCOME"},
		{Name: "ACTOR", Flexible: true}, {Name: "ADDRESS"}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "DOOR"}, cli.Column{Name: "ID"})
	}
	columns = append(columns, cli.Column{Name: "DETAIL", Flexible: true})
	rows := make([][]string, 0, len(operations))
	for _, d := range operations {
		row := []string{a.When(&d.At), d.Verb, d.Resource, d.Outcome, d.Actor, d.Address}
		if a.Output == cli.FormatWide {
			row = append(row, d.Door, d.ID)
		}
		rows = append(rows, append(row, operationDetail(d)))
	}
	return a.PrintTable(columns, rows)
}

// operationDetail returns in a few words what the other columns do not show.
func operationDetail(d v1.Operation) string {
	var parts []string
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	if d.Holder != "" && d.Holder != d.Actor {
		add("of %s", d.Holder)
	}
	if d.Token != 0 {
		add("token %d", d.Token)
	}
	if d.How != "" {
		add("%s", d.How)
	}
	if d.By != "" && d.By != d.Actor {
		add("by %s", d.By)
	}
	if d.Session != "" {
		add("session %s", d.Session)
	}
	return strings.TrimPrefix(cli.Because(strings.Join(parts, ", "), d.Reason), " ")
}

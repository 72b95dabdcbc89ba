package resource

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// History returns the command history.
func History(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show what happened to a resource",
		Long: `History shows the events of one resource, oldest first: who asked for it, held it
and lost it, how each lease ended, who broke it and why. Renewals are not events. The
last runs of a job that run --at-most-every runs are among them, with their outcomes.

The server keeps as much history as it has room for, the newest. If there was more,
the command says so.`,
		Example: `  leasehold history prod/deploy
  leasehold history prod/deploy --limit 20 -o wide
  leasehold history prod/deploy -o json |
      jq -r '.[] | select(.how == "broken") | .by'`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if limit < 0 {
			return cli.Usage("--limit is %d: use 1 or more, or 0 for all", limit)
		}
		events, gone, err := pastEvents(ctx, c, args[0], limit)
		if err != nil {
			return err
		}
		runs, err := pastRuns(ctx, a, c, args[0])
		if err != nil {
			return err
		}
		events = cli.MergeEvents(events, runs.Events(c.Client.Namespace, args[0]))
		if limit > 0 {
			events = events[max(0, len(events)-limit):]
		}
		return printHistory(a, args[0], events, gone)
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "at most this many, the newest (default: all that are known)")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// pastEvents goes back through the pages until there are enough events, or no older ones.
func pastEvents(ctx context.Context, c *cli.Conn, name string, limit int) (events []v1.Event, gone bool, err error) {
	query := v1.HistoryQuery{Resource: name, Limit: v1.MaxLimit}
	events = []v1.Event{}
	for {
		page, err := c.History(ctx, query)
		if err != nil {
			return nil, false, err
		}
		events = append(slices.Clone(page.Items), events...)
		if limit > 0 && len(events) >= limit {
			return events[len(events)-limit:], false, nil
		}
		if query.Before = page.Next; query.Before == "" {
			return events, page.Gone, nil
		}
	}
}

func printHistory(a *cli.App, name string, events []v1.Event, gone bool) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(events)
	case a.Output == cli.FormatName:
		return printPositions(a, events)
	case len(events) == 0:
		a.Say("nothing is known to have happened to %s", name)
		return nil
	case gone:
		a.Say("older events are no longer known")
	}
	columns := []cli.Column{{Name: "WHEN"}, {Name: "POSITION"}, {Name: "EVENT"}, {Name: "HOLDER", Flexible: true},
		{Name: "DETAIL", Flexible: true}}
	rows := make([][]string, 0, len(events))
	for _, e := range events {
		rows = append(rows, []string{a.When(&e.At), e.Position().String(), e.Kind, e.Holder, a.Detail(e)})
	}
	return a.PrintTable(columns, rows)
}

func printPositions(a *cli.App, events []v1.Event) error {
	for _, e := range events {
		if err := a.PrintLine(e.Position().String()); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) historyCommand() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show what happened to a resource",
		Long: `History shows the events of one resource, oldest first: who asked for it, held it
and lost it, how each lease ended, who broke it and why. Renewals are not events.

The server keeps as much history as it has room for, the newest. If there was more,
the command says so.`,
		Example: `  leasehold history prod/deploy
  leasehold history prod/deploy --limit 20 -o wide
  leasehold history prod/deploy -o json | jq -r '.[] | select(.how == "broken") | .by'`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if limit < 0 {
			return usage("--limit is %d: use 1 or more, or 0 for all", limit)
		}
		events, gone, err := c.pastEvents(ctx, args[0], limit)
		if err != nil {
			return err
		}
		return a.printHistory(args[0], events, gone)
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "only so many, the newest (default: all that are known)")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

// pastEvents goes back through the pages until there are enough events, or no more.
func (c *conn) pastEvents(ctx context.Context, name string, limit int) (events []v1.Event, gone bool, err error) {
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

func (a *app) printHistory(name string, events []v1.Event, gone bool) error {
	switch {
	case a.output == formatJSON:
		return a.printJSON(events)
	case a.output == formatName:
		return a.printPositions(events)
	case len(events) == 0:
		a.say("nothing is known to have happened to %s", name)
		return nil
	case gone:
		a.say("older events are not known any more")
	}
	columns := []column{{name: "WHEN"}, {name: "POSITION"}, {name: "EVENT"}, {name: "HOLDER", flexible: true}, {name: "DETAIL", flexible: true}}
	rows := make([][]string, 0, len(events))
	for _, e := range events {
		rows = append(rows, []string{a.when(&e.At), e.Position().String(), e.Kind, e.Holder, a.detail(e)})
	}
	return a.printTable(columns, rows)
}

func (a *app) printPositions(events []v1.Event) error {
	for _, e := range events {
		if err := a.printLine(e.Position().String()); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) holdsCommand() *cobra.Command {
	var f journalFlags
	cmd := &cobra.Command{
		Use:   "holds [NAME]",
		Short: "Show who held what, from when until when",
		Long: `Holds shows the timeline of a resource, or of all: who held it, from when until when,
how long the holder had waited for it, and how it ended. A NAME with a slash at its end
means all that begin so. The newest is last, and whoever holds something now stands
behind those that are over; json and ndjson have only what is over.

--since and --until choose what was held at any moment between them. A lease that was
handed to another holder is two holds, the first of which ended as "changed".

The journal that this is read from is bounded: the oldest is dropped first.`,
		Example: `  leasehold holds prod/deploy
  leasehold holds prod/ --since 7d --holder ci@build-7
  leasehold holds prod/deploy --since 2026-03-01 --until 2026-03-02 -o json`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		q, err := f.query(a, cmd, args)
		if err != nil {
			return err
		}
		if a.output == formatLines && f.limit == 0 {
			return a.copyLines(ctx, q, c.ExportHolds)
		}
		holds, err := newest(f.limit, func(after string, limit int) (v1.List[v1.Hold], error) {
			q.After, q.Limit = after, limit
			return c.HoldPage(ctx, q)
		})
		if err != nil {
			return err
		}
		return a.printHolds(ctx, c, q, holds)
	})
	cmd.Flags().StringVar(&f.holder, "holder", "", "of this holder only")
	a.completesFlag(cmd, "holder", holderNames)
	f.add(cmd)
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatLines)
	return cmd
}

func (a *app) printHolds(ctx context.Context, c *conn, q v1.JournalQuery, holds []v1.Hold) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(holds)
	case formatLines:
		return printLines(a, holds)
	}
	leases, err := c.heldNow(ctx, q)
	if err != nil {
		return err
	}
	if len(holds)+len(leases) == 0 {
		a.say("nobody is known to have held that")
		return nil
	}
	columns := []column{{name: "FROM"}, {name: "UNTIL"}, {name: "HELD"}, {name: "WAITED"}, {name: "RESOURCE", flexible: true}, {name: "HOLDER", flexible: true}}
	if a.output == formatWide {
		columns = append(columns, column{name: "TOKEN"}, column{name: "ID"})
	}
	columns = append(columns, column{name: "HOW", flexible: true})
	var rows [][]string
	for _, h := range holds {
		waited := short(time.Duration(h.WaitedMS) * time.Millisecond)
		row := []string{a.date(h.Since), a.date(h.Until), short(h.Until.Sub(h.Since.Time)), waited, h.Resource, h.Holder}
		rows = append(rows, append(a.wideHold(row, h.Token, h.ID), howItEnded(h)))
	}
	for _, l := range leases {
		row := []string{a.date(*l.Acquired), "", short(a.now().Sub(l.Acquired.Time)), "", l.Resource, l.Holder}
		rows = append(rows, append(a.wideHold(row, l.Token, l.ID), "holds it now"))
	}
	return a.printTable(columns, rows)
}

func (a *app) wideHold(row []string, token uint64, id string) []string {
	if a.output != formatWide {
		return row
	}
	return append(row, strconv.FormatUint(token, 10), id)
}

func howItEnded(h v1.Hold) string {
	if h.By == "" {
		return because(h.How, h.Reason)
	}
	return because(h.How+" by "+h.By, h.Reason)
}

// date shows a moment by its day and time; (wide) as everywhere.
func (a *app) date(t v1.Time) string {
	if a.output == formatWide {
		return absolute(t.Time)
	}
	return t.Local().Format(time.DateTime)
}

// heldNow returns the leases that a query about holds means and that are not over.
func (c *conn) heldNow(ctx context.Context, q v1.JournalQuery) (leases []v1.Lease, err error) {
	resources := []v1.Resource{}
	if q.Resource != "" {
		r, err := c.Resource(ctx, q.Resource, 1)
		if err != nil {
			return nil, err
		}
		resources = append(resources, r)
	} else if resources, err = c.everything(ctx, q.Prefix, false); err != nil {
		return nil, err
	}
	for _, r := range resources {
		for _, l := range r.Holders {
			begun := l.Acquired != nil && (q.Until.IsZero() || l.Acquired.Before(q.Until))
			if begun && (q.Holder == "" || l.Holder == q.Holder) {
				leases = append(leases, l)
			}
		}
	}
	return leases, nil
}

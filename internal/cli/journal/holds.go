package journal

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Holds returns the command holds.
func Holds(a *cli.App) *cobra.Command {
	var f journalFlags
	cmd := &cobra.Command{
		Use:   "holds [NAME]",
		Short: "Show who held what, from when until when",
		Long: `Holds shows the timeline of a resource, or of all: who held it, from when until when,
how long the holder had waited for it, and how it ended. A NAME with a slash at its end
means all names that begin with it. The newest is last, and current leases stand
behind those that are over; json and ndjson have only those that are over.

--since and --until choose what was held at any moment between them. A lease that was
handed to another holder is two holds, the first of which ended as "changed".

The journal that this is read from is bounded: the oldest is dropped first.`,
		Example: `  leasehold holds prod/deploy
  leasehold holds prod/ --since 7d --holder ci@build-7
  leasehold holds prod/deploy --since 2026-03-01 --until 2026-03-02 -o json`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		q, err := f.query(a, cmd, args)
		if err != nil {
			return err
		}
		if a.Output == cli.FormatLines && f.limit == 0 {
			return copyLines(ctx, a, q, c.ExportHolds)
		}
		holds, err := newest(f.limit, func(after string, limit int) (v1.List[v1.Hold], error) {
			q.After, q.Limit = after, limit
			return c.HoldPage(ctx, q)
		})
		if err != nil {
			return err
		}
		return printHolds(ctx, a, c, q, holds)
	})
	cmd.Flags().StringVar(&f.holder, "holder", "", "of this holder only")
	a.CompletesFlag(cmd, "holder", cli.HolderNames)
	f.add(cmd)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatLines)
	return cmd
}

func printHolds(ctx context.Context, a *cli.App, c *cli.Conn, q v1.JournalQuery, holds []v1.Hold) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(holds)
	case cli.FormatLines:
		return printLines(a, holds)
	}
	leases, err := heldNow(ctx, c, q)
	if err != nil {
		return err
	}
	if len(holds)+len(leases) == 0 {
		a.Say("no known hold matches")
		return nil
	}
	columns := []cli.Column{{Name: "FROM"}, {Name: "UNTIL"}, {Name: "HELD"}, {Name: "WAITED"},
		{Name: "RESOURCE", Flexible: true}, {Name: "HOLDER", Flexible: true}}
	used := a.Output == cli.FormatWide && slices.ContainsFunc(holds, isUsed)
	if used {
		columns = append(columns, cli.Column{Name: "BUSY"}, cli.Column{Name: "IDLE"})
	}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "TOKEN"}, cli.Column{Name: "ID"})
	}
	columns = append(columns, cli.Column{Name: "HOW", Flexible: true})
	var rows [][]string
	for _, h := range holds {
		waited := cli.Short(time.Duration(h.WaitedMS) * time.Millisecond)
		row := []string{date(a, h.Since), date(a, h.Until), cli.Short(h.Until.Sub(h.Since.Time)), waited, h.Resource,
			h.Holder}
		rows = append(rows, append(wideHold(a, row, h, used), howItEnded(h)))
	}
	for _, l := range leases {
		row := []string{date(a, *l.Acquired), "", cli.Short(a.Now().Sub(l.Acquired.Time)), "", l.Resource, l.Holder}
		rows = append(rows, append(wideHold(a, row, v1.Hold{Token: l.Token, ID: l.ID}, used), "holds it now"))
	}
	return a.PrintTable(columns, rows)
}

// isUsed reports whether a hold was one of units of a pool whose hosts said how much they were used.
func isUsed(h v1.Hold) bool { return h.BusyMS+h.IdleMS > 0 }

// wideHold adds what only (wide) shows; used says whether there are columns for use.
func wideHold(a *cli.App, row []string, h v1.Hold, used bool) []string {
	if a.Output != cli.FormatWide {
		return row
	}
	switch {
	case used && isUsed(h):
		for _, ms := range []int64{h.BusyMS, h.IdleMS} {
			row = append(row, cli.Short(time.Duration(ms)*time.Millisecond))
		}
	case used:
		row = append(row, "", "")
	}
	return append(row, strconv.FormatUint(h.Token, 10), h.ID)
}

func howItEnded(h v1.Hold) string {
	if h.By == "" {
		return cli.Because(h.How, h.Reason)
	}
	return cli.Because(h.How+" by "+h.By, h.Reason)
}

// date shows a moment by its day and time; (wide) as everywhere.
func date(a *cli.App, t v1.Time) string {
	if a.Output == cli.FormatWide {
		return cli.Absolute(t.Time)
	}
	return t.Local().Format(time.DateTime)
}

// heldNow returns the leases that a query about holds means and that are not over.
func heldNow(ctx context.Context, c *cli.Conn, q v1.JournalQuery) (leases []v1.Lease, err error) {
	resources := []v1.Resource{}
	if q.Resource != "" {
		r, err := c.Resource(ctx, q.Resource, 1)
		if err != nil {
			return nil, err
		}
		resources = append(resources, r)
	} else if resources, err = c.Everything(ctx, v1.ResourceQuery{Prefix: q.Prefix}); err != nil {
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

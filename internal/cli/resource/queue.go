package resource

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
)

// Queue returns the command queue.
func Queue(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue NAME",
		Short: "Show who waits for a resource, in order",
		Long: `Queue shows who waits for a resource, the next one first: with what priority, for how
many of its slots, since when, until when, and why; and in how long its turn usually
comes, once enough leases have ended there to tell. Larger priorities come
first, and among equals those who came first.

With -o name it prints ids: each is that of the lease which the waiter will get, and
what "leasehold move" takes.`,
		Example: `  leasehold queue prod/deploy
  leasehold queue prod/deploy -o wide            # with ids, sessions, dates
  leasehold queue prod/deploy -o name | head -1   # the id of the next in line`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		resource, err := c.Resource(ctx, args[0], v1.MaxLimit)
		if err != nil {
			return err
		}
		return printQueue(a, resource, whyWaiting(ctx, c, args[0]))
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// whyWaiting returns what each waiter of a pool waits for, by its id, such as a limit that it is over; nil if the
// resource is no pool.
func whyWaiting(ctx context.Context, c *cli.Conn, name string) map[string]string {
	pool, err := pools.Get(ctx, c.Caller, name, pools.Query{Limit: 1, Queue: v1.MaxLimit})
	if err != nil {
		return nil
	}
	why := map[string]string{}
	for _, w := range pool.Queue {
		why[w.ID] = w.Why
	}
	return why
}

func printQueue(a *cli.App, r v1.Resource, why map[string]string) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(append([]v1.Waiter{}, r.Queue...)) // never null
	case cli.FormatName:
		for _, w := range r.Queue {
			if err := a.PrintLine(w.ID); err != nil {
				return err
			}
		}
		return nil
	}
	a.Say("%s", whoIsInTheWay(r))
	if len(r.Queue) == 0 {
		a.Say("nobody waits for it")
		return nil
	}
	if err := printWaiters(a, r.Queue, why); err != nil {
		return err
	}
	if more := r.Waiting - len(r.Queue); more > 0 {
		a.Say("and %d more", more)
	}
	return nil
}

// whoIsInTheWay returns what those in the queue wait for.
func whoIsInTheWay(r v1.Resource) string {
	if len(r.Holders) == 0 && len(r.Overlapping) > 0 {
		l := r.Overlapping[0]
		return r.Resource + " overlaps " + l.Resource + ", held by " + cli.Because(l.Holder, l.Reason)
	}
	if len(r.Holders) == 0 {
		return r.Resource + " is " + r.State
	}
	first := r.Holders[0]
	text := r.Resource + " is held by " + cli.Because(first.Holder, first.Reason)
	if more := max(r.Holding, len(r.Holders)) - 1; more > 0 {
		return text + " and " + cli.Plural(more, "other", "others")
	}
	return text + "; " + cli.Outlook(first, r.Usual).String()
}

func printWaiters(a *cli.App, queue []v1.Waiter, why map[string]string) error {
	columns := []cli.Column{{Name: "POSITION"}, {Name: "HOLDER", Flexible: true}, {Name: "PRIORITY"}, {Name: "SLOTS"},
		{Name: "SINCE"}, {Name: "TURN"}, {Name: "GIVES UP"}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "ID"}, cli.Column{Name: "SESSION"},
			cli.Column{Name: "LABELS", Flexible: true})
	}
	columns = append(columns, cli.Column{Name: "REASON", Flexible: true})
	if why != nil {
		columns = append(columns, cli.Column{Name: "WHY IT WAITS", Flexible: true})
	}
	var rows [][]string
	for _, w := range queue {
		row := waiterRow(a, w)
		if why != nil {
			row = append(row, why[w.ID])
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

func waiterRow(a *cli.App, w v1.Waiter) []string {
	slots, turn, givesUp := "all", "", "never"
	if w.Slots > 0 {
		slots = strconv.Itoa(w.Slots)
	}
	if w.Forecast != 0 {
		turn = "in about " + cli.About(time.Duration(w.Forecast), time.Duration(w.ForecastError))
	}
	if w.Until != nil {
		givesUp = a.Until(w.Until.Time)
	}
	row := []string{strconv.Itoa(w.Position), w.Holder, strconv.Itoa(w.Priority), slots, a.When(&w.Since), turn,
		givesUp}
	if a.Output == cli.FormatWide {
		row = append(row, w.ID, w.Session, strings.TrimSpace(cli.LabelList(w.Labels)))
	}
	return append(row, w.Reason)
}

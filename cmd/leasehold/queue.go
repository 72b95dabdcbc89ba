package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue NAME",
		Short: "Show who waits for a resource, in order",
		Long: `Queue shows who waits for a resource, the next one first: with what priority, for how
many of its slots, since when, until when, and why; and in how long its turn usually
comes, once enough leases have ended there to tell. Larger priorities stand in front;
among equals whoever came first.

With -o name it prints ids: each is that of the lease which the waiter will get, and
what "leasehold move" takes.`,
		Example: `  leasehold queue prod/deploy
  leasehold queue prod/deploy -o wide                       # with ids, sessions, labels and dates
  leasehold queue prod/deploy -o name | head -1             # the id of whoever is next`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		resource, err := c.Resource(ctx, args[0], v1.MaxLimit)
		if err != nil {
			return err
		}
		return a.printQueue(resource)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) printQueue(r v1.Resource) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(append([]v1.Waiter{}, r.Queue...)) // never null
	case formatName:
		for _, w := range r.Queue {
			if err := a.printLine(w.ID); err != nil {
				return err
			}
		}
		return nil
	}
	a.say("%s", whoIsInTheWay(r))
	if len(r.Queue) == 0 {
		a.say("nobody waits for it")
		return nil
	}
	if err := a.printWaiters(r.Queue); err != nil {
		return err
	}
	if more := r.Waiting - len(r.Queue); more > 0 {
		a.say("and %d more", more)
	}
	return nil
}

// whoIsInTheWay says what those in the queue wait for.
func whoIsInTheWay(r v1.Resource) string {
	if len(r.Holders) == 0 {
		return r.Resource + " is " + r.State
	}
	first := r.Holders[0]
	text := r.Resource + " is held by " + because(first.Holder, first.Reason)
	if more := max(r.Holding, len(r.Holders)) - 1; more > 0 {
		return text + " and " + plural(more, "other", "others")
	}
	if first.RemainingMS == nil {
		return text + ", without an end of its own"
	}
	return text + "; " + left(first) + " left"
}

func (a *app) printWaiters(queue []v1.Waiter) error {
	columns := []column{{name: "POSITION"}, {name: "HOLDER", flexible: true}, {name: "PRIORITY"}, {name: "SLOTS"}, {name: "SINCE"}, {name: "TURN"}, {name: "GIVES UP"}}
	if a.output == formatWide {
		columns = append(columns, column{name: "ID"}, column{name: "SESSION"}, column{name: "LABELS", flexible: true})
	}
	columns = append(columns, column{name: "REASON", flexible: true})
	var rows [][]string
	for _, w := range queue {
		rows = append(rows, a.waiterRow(w))
	}
	return a.printTable(columns, rows)
}

func (a *app) waiterRow(w v1.Waiter) []string {
	slots, turn, givesUp := "all", "", "never"
	if w.Slots > 0 {
		slots = strconv.Itoa(w.Slots)
	}
	if w.Forecast != 0 {
		turn = "in about " + short(time.Duration(w.Forecast))
	}
	if w.Until != nil {
		givesUp = a.until(w.Until.Time)
	}
	row := []string{strconv.Itoa(w.Position), w.Holder, strconv.Itoa(w.Priority), slots, a.when(&w.Since), turn, givesUp}
	if a.output == formatWide {
		row = append(row, w.ID, w.Session, strings.TrimSpace(labelList(w.Labels)))
	}
	return append(row, w.Reason)
}

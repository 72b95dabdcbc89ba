package pool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// status returns the command pool status.
func status(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status POOL",
		Short: "Show who has which units, and who waits for what",
		Long: `Status shows the units of a pool by host, who has them, which are not granted and why; then
who waits, in order, and what for. -o wide adds the ids of leases and who had a free unit last.`,
		Example: `  leasehold pool status gpu
  leasehold pool status gpu -o json | jq '.free'
  leasehold pool status phones -N lab`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		pool, err := whole(ctx, c, args[0])
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(pool)
		}
		return printPool(a, &pool)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON)
	return cmd
}

// whole reads a pool page by page.
func whole(ctx context.Context, c *cli.Conn, path string) (pools.Pool, error) {
	pool, err := pools.Get(ctx, c.Caller, path, pools.Query{Limit: 1000})
	for next := pool.Next; err == nil && next != ""; {
		var page pools.Pool
		if page, err = pools.Get(ctx, c.Caller, path, pools.Query{Limit: 1000, After: next}); err == nil {
			pool.Units, next = append(pool.Units, page.Units...), page.Next
		}
	}
	pool.Next = ""
	return pool, err
}

// printPool prints how many units there are of which kind, each unit, and who waits with what it waits for: the first
// question of those who wait is why.
func printPool(a *cli.App, pool *pools.Pool) error {
	err := a.PrintLine(fmt.Sprintf("%s: %d units, %d free, %d held, %d out", pool.Resource, pool.Total, pool.Free,
		pool.Held, pool.Out))
	if len(pool.Limits) > 0 && err == nil {
		err = a.PrintLine("limits: " + strings.Join(pool.Limits, ", "))
	}
	if err == nil {
		err = printUnits(a, pool.Units)
	}
	for _, w := range pool.Queue {
		if err == nil {
			turn := ""
			if w.Forecast != 0 {
				turn = "; usually in about " + cli.About(time.Duration(w.Forecast), time.Duration(w.ForecastError))
			}
			err = a.PrintLine(fmt.Sprintf("%d. %s %s%s", w.Position, w.Holder, w.Why, turn))
		}
	}
	return err
}

// printUnits prints a row for each unit.
func printUnits(a *cli.App, units []pools.Unit) error {
	columns := []cli.Column{{Name: "HOST"}, {Name: "UNIT"}, {Name: "STATE"}, {Name: "HOLDER"}}
	reported := slices.ContainsFunc(units, func(u pools.Unit) bool { return u.Use != nil })
	if reported {
		columns = append(columns, cli.Column{Name: "USE"})
	}
	columns = append(columns, cli.Column{Name: "WHY"})
	if a.Output == cli.FormatWide && reported {
		columns = append(columns, cli.Column{Name: "MEMORY"}, cli.Column{Name: "REPORTED"}, cli.Column{Name: "BUSY"},
			cli.Column{Name: "IDLE"}, cli.Column{Name: "STRANGERS"})
	}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "LEASE"}, cli.Column{Name: "LAST HOLDER"})
	}
	columns = append(columns, cli.Column{Name: "LABELS", Flexible: true})
	var rows [][]string
	for _, u := range units {
		holder, last := u.Holder, ""
		if u.Lease == "" {
			holder, last = "", u.Holder
		}
		row := []string{u.Host, u.Name, u.State, holder}
		if reported {
			row = append(row, useText(a, u.Use))
		}
		row = append(row, u.Why)
		if a.Output == cli.FormatWide && reported {
			row = append(row, wideUse(a, u.Use)...)
		}
		if a.Output == cli.FormatWide {
			row = append(row, u.Lease, last)
		}
		rows = append(rows, append(row, labelText(u.Labels)))
	}
	return a.PrintTable(columns, rows)
}

// useText says how busy a unit is, or since when its lease does not use it.
func useText(a *cli.App, u *pools.Use) string {
	switch {
	case u == nil:
		return ""
	case a.Now().Sub(u.At.Time) > staleUse:
		return "not reported"
	case u.Percent == nil:
		return "unknown"
	case u.IdleSince == nil:
		return fmt.Sprintf("%d%%", *u.Percent)
	}
	text := "idle " + cli.Short(a.Now().Sub(u.IdleSince.Time))
	if u.Asked != nil {
		text += ", asked"
	}
	return text
}

// staleUse is after how long what a host said is no longer shown as if it were so now.
const staleUse = 3 * time.Minute

// wideUse is what only (wide) shows of a unit's use.
func wideUse(a *cli.App, u *pools.Use) []string {
	if u == nil {
		return make([]string, 5)
	}
	var strangers []string
	for _, p := range u.Strangers {
		strangers = append(strangers, fmt.Sprintf("%s(%d) of %s", p.Name, p.PID, p.User))
	}
	row := []string{fmt.Sprintf("%d MiB", u.Memory), a.When(&u.At), "", "", strings.Join(strangers, ", ")}
	if u.BusyMS+u.IdleMS > 0 {
		row[2] = cli.Short(time.Duration(u.BusyMS) * time.Millisecond)
		row[3] = cli.Short(time.Duration(u.IdleMS) * time.Millisecond)
	}
	return row
}

// labelText writes labels as --where compares them, in an order that does not change from one look to the next.
func labelText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, " ")
}

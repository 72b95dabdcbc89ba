package pool

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/api/v1/reports"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/report"
)

// The formats that only reports have.
const (
	formatCSV = "csv"
	formatSVG = "svg"
)

// reportCommand returns the command pool report.
func reportCommand(a *cli.App) *cobra.Command {
	days, by := 0, ""
	cmd := &cobra.Command{
		Use:   "report POOL",
		Short: "Sum up who held how much, and how much of that was idle",
		Long: `Report sums up the hours that units of a pool were held in the last days, per holder, host
or value of a label: how much of that was idle, busy or not reported, and how long they had
waited. Leases that are still held count up to now. Two units for an hour are two hours.

What hosts did not report is shown as – and is never 0. The numbers come from the journal,
which is bounded: what it has dropped is missing.`,
		Example: `  leasehold pool report gpu
  leasehold pool report gpu --days 7 --by label:team
  leasehold pool report gpu -o svg > gpu.svg`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if days < 1 || days > 3660 {
			return cli.SeeHelp(cmd, cli.Usage("--days is %d: 1 to 3660 are allowed", days))
		}
		q := reports.Query{From: time.Now().AddDate(0, 0, -days), By: by}
		r, err := reports.Get(ctx, c.Caller, args[0], q)
		if err != nil {
			return err
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(r)
		case formatCSV:
			return report.CSV(a.Stdout, &r)
		case formatSVG:
			return report.SVG(a.Stdout, &r)
		}
		return printReport(a, &r)
	})
	cmd.Flags().IntVar(&days, "days", 30, "how many days to look back")
	cmd.Flags().StringVar(&by, "by", report.ByHolder, "what to group by: holder, host or label:NAME")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, formatCSV, formatSVG)
	return cmd
}

// printReport prints a row for each group, and the total. What is held but idle comes first after what is held: it is
// what people look for.
func printReport(a *cli.App, r *reports.Report) error {
	columns := []cli.Column{{Name: "NAME", Flexible: true}, {Name: "HELD H"}, {Name: "IDLE H"}, {Name: "IDLE"},
		{Name: "BUSY H"}, {Name: "WAITED H"}, {Name: "HOLDS"}}
	var rows [][]string
	total := r.Total
	total.Name = "(all)"
	for _, row := range append(r.Rows, total) {
		rows = append(rows, []string{report.Name(&row), report.Hours(row.HeldMS), report.MaybeHours(row.IdleMS),
			report.IdleShare(&row), report.MaybeHours(row.BusyMS), report.Hours(row.WaitedMS), strconv.Itoa(row.Holds)})
	}
	return a.PrintTable(columns, rows)
}

package record

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Versions returns the command versions.
func Versions(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions PATH",
		Short: "Show the versions of a record",
		Long: `Versions lists what a record is now and the former versions that it keeps, the newest
first: the revision that wrote each of them, its size, when it was written, and by
whom, if that was done under a lease. What a deleted record kept is there for 30 days.

A record keeps as many versions as ` + "`leasehold put --keep`" + ` says. The revision names a
version: for ` + "`leasehold get --version`" + `, and for ` + "`leasehold rollback`" + `.`,
		Example: `  leasehold versions state/network
  leasehold get state/network --version 181 > network.before
  leasehold versions state/network -o json |
      jq -r '.[] | select(.holder == "ci") | .revision'`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		found, after := []v1.RecordVersion{}, ""
		for {
			page, err := c.Versions(ctx, args[0], after, v1.MaxLimit)
			if err != nil {
				return ExplainRecord(c, err)
			}
			found = append(found, page.Items...)
			if after = page.Next; after == "" {
				return printFormer(a, found)
			}
		}
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printFormer(a *cli.App, found []v1.RecordVersion) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(found)
	case cli.FormatName:
		for _, v := range found {
			if err := a.PrintLine(strconv.FormatUint(v.Revision, 10)); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []cli.Column{{Name: "REVISION"}, {Name: "VERSION"}, {Name: "SIZE"}, {Name: "WRITTEN"},
		{Name: "HOLDER", Flexible: true}, {Name: "STATE"}}
	var rows [][]string
	for _, v := range found {
		rows = append(rows, []string{
			strconv.FormatUint(v.Revision, 10), strconv.FormatUint(v.Version, 10), strconv.FormatInt(v.Size,
				10), a.When(v.Written), v.Holder, versionState(v),
		})
	}
	return a.PrintTable(columns, rows)
}

func versionState(v v1.RecordVersion) string {
	switch {
	case v.Current:
		return "current"
	case v.Deleted:
		return "deleted"
	}
	return "replaced"
}

// Rollback returns the command rollback.
func Rollback(a *cli.App) *cobra.Command {
	var request v1.PutRequest
	cmd := &cobra.Command{
		Use:   "rollback PATH --to REVISION",
		Short: "Restore a former version of a record",
		Long: `Rollback writes the value of a former version as a new version: nothing is lost. A record
that was deleted is made again.

With --if-revision it happens only if nobody has written in the meantime; otherwise the
command ends with code 65. --lease and --token fence it, as they do for ` + "`leasehold put`" + `.`,
		Example: `  leasehold versions state/network
  leasehold rollback state/network --to 181 --if-revision 190
  leasehold rollback state/network --to 181 -o json`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if request.Version == 0 {
			return cli.SeeHelp(cmd, cli.Usage("rollback needs to know where to: give --to with a revision that "+
				"`leasehold versions` shows"))
		}
		request.Path = args[0]
		record, err := c.PutRecord(ctx, request)
		if err != nil {
			return condition{args[0], false, request.IfRevision}.explain(ctx, c, err)
		}
		return printPut(a, record)
	})
	flags := cmd.Flags()
	flags.Uint64Var(&request.Version, "to", 0, "the revision of the version to go back to")
	flags.Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	fenceFlags(cmd, &request.Fence)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

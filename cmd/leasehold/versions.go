package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) versionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions PATH",
		Short: "Show what a record is and was",
		Long: `Versions lists what a record is now and the former versions that it keeps, the newest
first: the revision that wrote each of them, its size, when it was written, and by
whom, if that was done under a lease. What a deleted record kept is there for 30 days.

A record keeps as many versions as ` + "`leasehold put --keep`" + ` says. The revision names a
version: for ` + "`leasehold get --version`" + `, and for ` + "`leasehold rollback`" + `.`,
		Example: `  leasehold versions state/network
  leasehold get state/network --version 181 > network.before
  leasehold versions state/network -o json | jq -r '.[] | select(.holder == "ci") | .revision'`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesRecords(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		found, after := []v1.RecordVersion{}, ""
		for {
			page, err := c.Versions(ctx, args[0], after, v1.MaxLimit)
			if err != nil {
				return c.explainRecord(err)
			}
			found = append(found, page.Items...)
			if after = page.Next; after == "" {
				return a.printFormer(found)
			}
		}
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) printFormer(found []v1.RecordVersion) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(found)
	case formatName:
		for _, v := range found {
			if err := a.printLine(strconv.FormatUint(v.Revision, 10)); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []column{{name: "REVISION"}, {name: "VERSION"}, {name: "SIZE"}, {name: "WRITTEN"}, {name: "HOLDER", flexible: true}, {name: "STATE"}}
	var rows [][]string
	for _, v := range found {
		rows = append(rows, []string{
			strconv.FormatUint(v.Revision, 10), strconv.FormatUint(v.Version, 10), strconv.FormatInt(v.Size, 10), a.when(v.Written), v.Holder, versionState(v),
		})
	}
	return a.printTable(columns, rows)
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

func (a *app) rollbackCommand() *cobra.Command {
	var request v1.PutRequest
	cmd := &cobra.Command{
		Use:   "rollback PATH --to REVISION",
		Short: "Go back to what a record was",
		Long: `Rollback writes the value of a former version anew: nothing is lost by it, since that is
one more version. A record that was deleted is made again.

With --if-revision it happens only if nobody has written in the meantime. --lease and
--token fence it, as they do for ` + "`leasehold put`" + `.`,
		Example: `  leasehold versions state/network
  leasehold rollback state/network --to 181 --if-revision 190
  leasehold rollback state/network --to 181 -o json`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesRecords(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if request.Version == 0 {
			return seeHelp(cmd, usage("rollback needs to know where to: give --to with a revision that `leasehold versions` shows"))
		}
		request.Path = args[0]
		record, err := c.PutRecord(ctx, request)
		if err != nil {
			return c.explainRecord(err)
		}
		return a.printPut(record)
	})
	flags := cmd.Flags()
	flags.Uint64Var(&request.Version, "to", 0, "the revision of the version to go back to")
	flags.Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	fenceFlags(cmd, &request.Fence)
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

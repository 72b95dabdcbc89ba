package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) deleteCommand() *cobra.Command {
	var request v1.DeleteRequest
	prefix := false
	cmd := &cobra.Command{
		Use:   "delete PATH",
		Short: "Delete a record, or all that begin with a prefix",
		Long: `Delete deletes the record of a path. That there was none is no failure: an earlier
try may have done it. With --prefix it deletes all records whose path begins with
PATH, at once or not at all, up to 10,240 of them.

With --if-revision that revision must have changed the record last. --lease and
--token are those of put: who is late gets code 76, and nothing is deleted.`,
		Example: `  leasehold delete config/limits
  leasehold delete config/limits --if-revision 181
  leasehold delete workers/ --prefix`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesRecords(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if prefix && request.IfRevision != 0 {
			return seeHelp(cmd, usage("--if-revision is of one record: leave it out, or --prefix"))
		}
		if args[0] == "" {
			return seeHelp(cmd, usage("delete needs a path that is not empty"))
		}
		request.Path, request.Prefix = args[0], ""
		if prefix {
			request.Path, request.Prefix = "", args[0]
		}
		done, err := c.DeleteRecord(ctx, request)
		if err != nil {
			return c.explainRecord(err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(done)
		case formatName:
			return a.printLine(fmt.Sprint(done.Deleted))
		}
		a.say("deleted %s", plural(done.Deleted, "record", "records"))
		return nil
	})
	cmd.Flags().BoolVar(&prefix, "prefix", false, "all records whose path begins with PATH")
	cmd.Flags().Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	fenceFlags(cmd, &request.Fence)
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}
